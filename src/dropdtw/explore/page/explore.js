// The explorer: requests an alignment whenever a control changes, and draws the latest response.
// Each request carries all settings, so that browser tabs are independent.

import { controls, short } from "./controls.js";
import { cellAt, colors, grayImage, heatImage, layout, paint, paintCursor, paintHistogram } from "./draw.js";
import { timeRemark } from "./letters.js";
import { drawOrder, showWalk } from "./order.js";
import { get, latest, post } from "./wire.js";
import { rename, words } from "./words.js";

const $ = (id) => document.getElementById(id);
const state = { info: null, costs: null, gray: null, found: null, posterior: null, heat: null, settings: null, truths: [] };
let panel, at, say, seq = 0, cursor = null, asking = null, slow = 0, match, restored = null, suggested = null;

// --- colors ---------------------------------------------------------------------------------------------------

const THEMES = ["system", "dark", "light"];
const system = matchMedia("(prefers-color-scheme: dark)");
let theme = "system";
try { theme = localStorage.getItem("dropdtw-theme") ?? "system"; } catch { /* storage may be disabled */ }
const palette = () => colors(state.info, (theme === "system" ? system.matches : theme === "dark") ? "dark" : "light");

function dress() {
  if (!THEMES.includes(theme)) theme = "system";
  theme === "system" ? delete document.documentElement.dataset.theme : document.documentElement.dataset.theme = theme;
  $("theme").textContent = `Colors: ${theme}`;
  if (!state.costs) return;
  state.gray = grayImage(state.costs, palette());
  state.heat = state.posterior && heatImage(state.posterior, palette());
  draw();
}

$("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  try { localStorage.setItem("dropdtw-theme", theme); } catch { /* then the choice is not kept */ }
  dress();
});
system.addEventListener("change", dress);

// --- drawing ---------------------------------------------------------------------------------------------------

function fit(canvas, width, height) {
  const ratio = devicePixelRatio, [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function draw() {
  if (!state.costs || !state.settings) return;
  at = layout($("canvas").getContext("2d"), $("picture").clientWidth, state, palette());
  paint(fit($("canvas"), at.width, at.height), at, state, palette());
  drawCursor();
  const box = $("histogram"), prices = Object.values(state.found?.prices ?? {}).filter((v) => v !== null);
  if (state.found?.threshold != null) prices.push(state.found.threshold);
  paintHistogram(fit(box, box.clientWidth, 56), box.clientWidth, 56, state.costs.histogram, prices, palette());
}

function drawCursor() {
  paintCursor(fit($("cursor"), at.width, at.height), at, cursor, palette());
}

new ResizeObserver(() => draw()).observe($("picture"));

// --- aligning --------------------------------------------------------------------------------------------------

function runs(flags) {
  const found = [];
  for (let k = 0; k < flags.length; k++) {
    if (!flags[k]) continue;
    const start = k;
    while (k < flags.length && flags[k]) k++;
    found.push([start, k]);
  }
  return found;
}

const count = (flags) => flags.reduce((a, b) => a + b, 0);

function showError(text) {
  $("error").textContent = say ? say.said(text) : text;
  $("error").hidden = false;
  $("picture").classList.add("stale");
  for (const id of ["cost", "matched", "lost-x", "lost-z", "agreement"]) $(id).textContent = "–";
  for (const id of ["save-picture", "save-alignment", "save-chapters", "copy-code"]) $(id).disabled = true;
  $("code").value = "";
  for (const side of ["drop_x", "drop_z", "open_x", "open_z"]) $(`${side}-note`).textContent = "";
  for (const part of ["cell", "x", "z"]) $(`why-${part}`).textContent = "";
}

function show(found) {
  $("error").hidden = true;
  $("picture").classList.remove("stale");
  for (const id of ["save-picture", "save-alignment", "save-chapters", "copy-code"]) $(id).disabled = false;
  const [K, N] = state.info.shape;
  $("cost").textContent = short(found.cost, 6);
  $("cost").dataset.exact = found.cost;
  $("matched").textContent = state.info.talk ? `${N - count(found.dropped_x)} of ${N}` : found.pairs.length / 2;
  $("lost-x").textContent = `${count(found.dropped_x)} of ${N}`;
  $("lost-z").textContent = `${count(found.dropped_z)} of ${K}`;
  if (found.agreement !== null) $("agreement").textContent = `${(100 * found.agreement).toFixed(1)} %`;
  $("code").value = found.code;
  showTrust(state.settings);
  if (state.info.order) showWalk(state.info.order, found);
  for (const side of ["x", "z"]) {
    const n = found[`runs_${side}`].length;
    const what = !state.info.talk ? `dropped ${side}` : side === "x" ? "dropped sentences" : "skipped steps";
    $(`open_${side}-note`).textContent = `${n} run${n === 1 ? "" : "s"} of ${what}; a higher cost gives fewer, longer runs.`;
  }
  for (const side of ["drop_x", "drop_z"]) {
    const price = found.prices[side], kind = state.settings[side].kind;
    $(`${side}-note`).textContent = !state.info.methods[state.settings.method].drops ? `The method ${state.settings.method} has no drop costs.`
      : kind === "percentile" && price !== null ? `${state.settings[side].value} % of the pairs cost less than ${short(price)}; lower drops more.`
      : kind !== "constant" ? ""
      : found.prices.drop_x !== null && found.prices.drop_z !== null ? "A match that costs more than both drops together loses to them; lower drops more."
      : "A match that costs more than this loses to a drop; lower drops more.";
  }
}

/** Align with the current settings, then compute the posterior unless they have changed meanwhile. */
const align = latest(async (since, outdated) => {
  const settings = panel.read(), number = ++seq;
  state.settings = settings;
  document.body.dataset.busy = "yes";
  try {
    if (settings.match !== match) await loadMatrix(settings.match);
    if (outdated()) return;
    const found = await post("align", { seq: number, settings });
    if (found.seq !== seq) return;
    if (found.error) {
      state.found = state.posterior = state.heat = null;
      showError(found.error);
      draw();
      return;
    }
    found.runs_x = runs(found.dropped_x);
    found.runs_z = runs(found.dropped_z);
    state.found = found;
    show(found);
    draw();
    document.body.dataset.drawn = performance.now() - since;
    remember(settings);
    if (settings.gamma !== null) {
      if (slow > 120) await new Promise((go) => setTimeout(go, Math.min(2 * slow, 600)));
      if (outdated()) return;
      await computePosterior(settings, number);
    } else state.posterior = state.heat = null;
    const ms = performance.now() - since;
    $("time").textContent = `${ms.toFixed(0)} ms`;
    document.body.dataset.ms = ms;
    if (cursor && !outdated()) explain(cursor);
  } catch (error) {
    if (error.name !== "AbortError") showError(lost(error));
  } finally {
    if (!outdated()) document.body.dataset.busy = "no";
  }
});

const lost = (error) => error instanceof TypeError ? "The server does not respond; is `dropdtw explore` still running?" : error.message;

async function computePosterior(settings, number) {
  const begun = performance.now();
  asking = new AbortController();
  if (slow > 300) $("time").textContent = "…";
  const answer = await post("posterior", { seq: number, settings }, asking.signal);
  slow = performance.now() - begun;
  if (answer.seq !== seq) return;
  if (answer.error) { showError(answer.error); return; }
  state.posterior = answer;
  state.heat = heatImage(answer, palette());
  draw();
}

function changed() {
  asking?.abort(); // the posterior of the old settings is no longer needed
  align(performance.now());
}

async function loadMatrix(name) {
  const answer = await get(name === null ? "matrix" : `matrix?match=${encodeURIComponent(name)}`);
  const other = match !== undefined;
  match = name;
  state.costs = answer;
  state.gray = grayImage(answer, palette());
  panel.fit(answer);
  if (other && restored) panel.write(restored);
  else if (other) { // constants that fit the old costs mean nothing here
    const found = await post("suggest", { settings: panel.read() });
    if (!found.error) trust(found);
    panel.forget(answer.gamma, found);
  }
  restored = null;
  if (other) changed();
}

// --- why -------------------------------------------------------------------------------------------------------

const explain = latest(async (cell) => {
  if (!state.found) return;
  try {
    const answer = await post("explain", { settings: state.settings, i: cell.i, j: cell.j });
    if (answer.error) return;
    const { fps, times, said, names } = state.info;
    const seconds = fps
      ? ` (${(answer.j / fps).toFixed(2)} s)`
      : times.length ? timeRemark(times[answer.j], times.at(-1)) : "";
    const [z, x] = [say.z(answer.i), say.x(answer.j)], name = names[answer.i];
    $("why-cell-name").textContent = `${z}, ${x}`;
    $("why-x-name").textContent = `${x}${seconds}`;
    $("why-z-name").textContent = name ? `${z}: ${name}` : z;
    for (const part of ["cell", "x", "z"]) $(`why-${part}`).textContent = say.said(answer[part]);
    if (said.length) $("why-x").prepend(`“${said[answer.j]}” `);
  } catch (error) {
    showError(lost(error));
  }
});

function point(cell) {
  if (cursor && cell.i === cursor.i && cell.j === cursor.j) return;
  cursor = cell;
  drawCursor();
  explain(cell);
}

/** The z of a column: the one it matches, otherwise the one under the cursor. */
function rowOf(j) {
  const pairs = state.found?.pairs ?? [];
  for (let k = 0; k < pairs.length; k += 2) if (pairs[k + 1] === j) return pairs[k];
  return cursor?.i ?? 0;
}

/** The column in which a step is first matched, otherwise the one under the cursor. */
function firstOf(step) {
  const visits = state.found?.visits ?? [];
  for (let k = 0; k < visits.length; k += 3) if (visits[k] === step) return visits[k + 1];
  return cursor?.j ?? 0;
}

$("picture").addEventListener("pointermove", (event) => {
  if (!at) return;
  const box = $("picture").getBoundingClientRect();
  const cell = cellAt(at, event.clientX - box.left, event.clientY - box.top);
  if (cell.j === null && cell.i === null) return;
  const j = cell.j ?? cursor?.j ?? 0;
  point({ i: cell.i ?? rowOf(j), j });
});

$("picture").addEventListener("focus", () => { if (!cursor && at && $("picture").matches(":focus-visible")) point({ i: rowOf(0), j: 0 }); });
$("picture").addEventListener("keydown", (event) => {
  if (!at || event.ctrlKey || event.metaKey || event.altKey) return;
  const far = event.shiftKey ? 10 : 1, { K, N } = at, now = cursor ?? { i: 0, j: 0 };
  const dropped = state.found?.dropped_x ?? [];
  const next = (flag) => { for (let k = 1; k <= N; k++) if (dropped[(now.j + k) % N] === flag) return (now.j + k) % N; return now.j; };
  const moves = {
    ArrowLeft: () => ({ ...now, j: now.j - far }), ArrowRight: () => ({ ...now, j: now.j + far }),
    ArrowUp: () => ({ ...now, i: now.i - far }), ArrowDown: () => ({ ...now, i: now.i + far }),
    Home: () => ({ ...now, j: 0 }), End: () => ({ ...now, j: N - 1 }),
    PageUp: () => ({ ...now, i: 0 }), PageDown: () => ({ ...now, i: K - 1 }),
    d: () => ({ ...now, j: next(1) }), D: () => ({ ...now, j: next(1) }),
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  const { i, j } = moves[event.key]();
  point({ i: Math.max(0, Math.min(K - 1, i)), j: Math.max(0, Math.min(N - 1, j)) });
});

// --- buttons ---------------------------------------------------------------------------------------------------

/** Next to the button: the confidence in a suggested drop cost, with the reason. */
function trust(found) {
  suggested = found;
  suggested.why = say.said(found.why);
  $("suggestion").textContent = `${percent(found.confidence)} sure: ${suggested.why}.`;
  $("suggestion").classList.toggle("doubt", found.confidence < 0.5);
}

const percent = (share) => `${Math.round(100 * share)} %`;

/** Above the picture: the confidence in the drop cost, if it is a suggested one. */
function showTrust(settings) {
  const { kind, value } = settings[settings.threshold.kind === "none" ? "drop_x" : "threshold"];
  const taken = suggested !== null && kind !== "none" && suggested[kind] === value, box = $("trust");
  box.hidden = !taken;
  if (!taken) return;
  const doubt = suggested.confidence < 0.5;
  box.classList.toggle("doubt", doubt);
  $("picture").classList.toggle("doubt", doubt);
  const name = settings.threshold.kind === "none" ? "drop cost" : "threshold";
  $("trust-head").textContent = doubt ? `Do not rely on this: the suggested ${name} is a guess (${percent(suggested.confidence)} sure).`
    : `Suggested ${name} ${short(value)}: ${percent(suggested.confidence)} sure.`;
  $("trust-why").textContent = doubt ? `${suggested.why[0].toUpperCase()}${suggested.why.slice(1)}.` : "";
}

/** Ask the server and use its answer; `tell` shows why there is none. more: what it needs besides the settings. */
async function ask(path, settings, use, tell = showError, more = {}) {
  try {
    const answer = await post(path, { settings, ...more });
    if (answer.error) tell(answer.error);
    else use(answer);
  } catch (error) {
    showError(lost(error));
  }
}

$("suggest").addEventListener("click", () => ask("suggest", panel.read(), (found) => {
  trust(found);
  panel.suggest(found);
  changed();
}, (why) => { $("suggestion").textContent = why; }));

$("suggest-opening").addEventListener("click", () => ask("suggest-opening", panel.read(), (found) => {
  const cost = Math.max(0, ...Object.values(found));
  $("opening").textContent = cost ? `${short(cost)}: no stretch of chance matches inside junk would save more.`
    : "At this drop cost, chance matches save nothing, so no opening cost is needed.";
  panel.open(found);
  changed();
}));

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const stem = () => state.info.title.replace(/[^\w.-]+/g, "_");
$("save-picture").addEventListener("click", () => $("canvas").toBlob((blob) => save(blob, `${stem()}.png`), "image/png"));
const saveJson = (text, kind) => save(new Blob([text], { type: "application/json" }), `${stem()}.${kind}.json`);
$("save-alignment").addEventListener("click", () => ask("export", state.settings, (found) => saveJson(JSON.stringify(found), "alignment")));
$("save-chapters").addEventListener("click", () => {
  const { value: kind, selectedOptions: [{ dataset: { end } }] } = $("chapters-kind");
  const use = ({ content }) => save(new Blob([content], { type: "text/plain" }), `${stem()}.chapters.${end}`);
  ask("chapters", state.settings, use, showError, { kind });
});
$("copy-code").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("code").value);
    $("copied").textContent = "copied";
  } catch {
    $("code").select();
    $("copied").textContent = "selected: press Ctrl-C";
  }
  setTimeout(() => { $("copied").textContent = ""; }, 3000);
});
$("reset").addEventListener("click", () => {
  $("opening").textContent = "";
  if (state.info.suggested) trust(state.info.suggested);
  restore(state.info.settings);
});

/** Show settings that did not come from the controls. */
function restore(settings) {
  restored = settings;
  panel.write(restored);
  changed();
}

// A file of settings is what `Aligner.to_dict` writes, so that Python and the command line read it too.
$("save-settings").addEventListener("click", () => ask("aligner", panel.read(), (found) => saveJson(JSON.stringify(found, null, 2), "aligner")));
$("open-settings").addEventListener("click", () => $("settings-file").click());
$("settings-file").addEventListener("change", async () => {
  const file = $("settings-file").files[0];
  if (!file) return;
  $("settings-file").value = ""; // so that the same file can be opened again
  try {
    const answer = await post("open", { aligner: JSON.parse(await file.text()) });
    $("opened").textContent = answer.error ? `${file.name}: ${answer.error}` : `opened ${file.name}`;
    if (!answer.error) restore(answer);
  } catch (error) {
    $("opened").textContent = `${file.name}: ${error instanceof SyntaxError ? "not valid JSON" : lost(error)}`;
  }
});

// On a phone the settings cover the bottom of the screen: scroll the picture into view above them.
const phone = matchMedia("(max-width: 640px)");
$("drawer").addEventListener("toggle", () => { if (phone.matches && $("drawer").open) $("picture").scrollIntoView({ block: "start" }); });

// --- start -----------------------------------------------------------------------------------------------------

// Keep the settings in the address, so that a reloaded or copied tab shows the same.
let timer;
function remember(settings) {
  clearTimeout(timer);
  timer = setTimeout(() => history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(settings))}`), 400);
}

function remembered(first) {
  try {
    const found = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    const alike = Object.keys(first).every((key) => key in found && (key === "gamma" || typeof found[key] === typeof first[key]));
    return alike && found.method in state.info.methods ? found : first;
  } catch {
    return first;
  }
}

async function start() {
  dress();
  const info = state.info = await get("info"), [K, N] = info.shape;
  document.title = `${info.title} · dropdtw explorer`;
  say = words(info);
  if (info.talk) rename();
  $("chapters").hidden = !info.talk;
  const sides = info.talk ? `${K} steps (rows) × ${N} sentences (columns)` : `${K} elements of Z (rows) × ${N} of X (columns)`;
  $("what").textContent = `${info.title}: ${sides} · ${info.talk ? "curve" : "curves"}: ${info.curves.what}`;
  $("what").title = $("what").textContent;
  $("note").textContent = info.note ?? "";
  $("note").hidden = !info.note;
  $("agreement-box").hidden = !info.truth;
  if (info.truth) state.truths = truthRuns(info.truth);
  if (info.order) drawOrder(info.order, say, (step) => point({ i: step, j: firstOf(step) }));
  panel = controls(info, changed);
  const first = remembered(info.settings);
  if (info.suggested) trust(info.suggested);
  if (phone.matches) $("drawer").open = false;
  panel.write(first);
  await loadMatrix(first.match);
  panel.write(first);
  changed();
}

function truthRuns(labels) {
  const found = [];
  for (let k = 0; k < labels.length;) {
    const start = k;
    while (k < labels.length && labels[k] === labels[start]) k++;
    if (labels[start] >= 0) found.push([labels[start], start, k]);
  }
  return found;
}

start().catch((error) => showError(lost(error)));
