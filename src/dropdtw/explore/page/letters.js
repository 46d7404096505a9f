// The text in the picture: names, axes and the legend with its patterns. Labels that would overlap are left out.

const FONT = "system-ui, 'DejaVu Sans', sans-serif";
const ROW = 18, BAR = 70;

export function lettering(context, at, state, palette) {
  const { bands, left, inner, K } = at;
  context.font = `12px ${FONT}`;
  context.textBaseline = "middle";
  context.fillStyle = palette.text;
  context.textAlign = "right";
  const name = (text, band) => context.fillText(text, left - 8, band.y + band.height / 2);
  const { talk } = state.info;
  name(talk ? "talk" : "X", bands.signal);
  name(talk ? "steps" : left > 90 ? "segments" : "segm.", bands.segments);
  if (bands.truth) name("truth", bands.truth);
  if (bands.posterior) {
    name("P(match)", bands.posterior);
    name(talk ? "P(drop)" : "P(drop x)", bands.drop);
    if (at.beside) {
      context.textAlign = "center";
      const words = talk ? (at.beside > 30 ? "P(skip)" : "skip") : at.beside > 30 ? "P(drop z)" : "drop z";
      context.fillText(words, left + inner + 8 + at.beside / 2 + 2, bands.posterior.y + bands.posterior.height + 11);
    }
  }
  context.fillStyle = palette.soft;
  along(context, at, state.info);
  context.textAlign = "right";
  const middle = (i) => bands.matrix.y + (i + 0.5) / K * bands.matrix.height;
  if (at.named) {
    const step = Math.max(1, Math.ceil(15 / (bands.matrix.height / K)));
    const most = Math.max(1, Math.floor((step * bands.matrix.height / K - 2) / NAME_LINE));
    for (let i = 0; i < K; i += step) {
      const shown = wrapped(context, `${i + at.first} ${state.info.names[i]}`, left - 14, most);
      shown.forEach((line, k) => context.fillText(line, left - 10, middle(i) + NAME_LINE * (k - (shown.length - 1) / 2)));
    }
  } else {
    for (const i of ticks(K, bands.matrix.height / 26)) context.fillText(i, 36, middle(i));
    context.save();
    context.translate(8, bands.matrix.y + bands.matrix.height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    if (K <= 1000) context.fillText("z (index)", 0, 0); // longer numbers need the space
    context.restore();
  }
  legend(context, at, state, palette);
}

/** The axis of X: tick marks, and its name below. */
function along(context, at, { fps, times }) {
  const { bands, left, inner, width, N } = at, below = bands.ticks.y + 11;
  context.textAlign = "center";
  const { places, name } = marks(N, inner / 64, fps, times);
  let last = -Infinity;
  for (const [j, text] of places) {
    const x = left + j / N * inner, half = context.measureText(text).width / 2;
    context.fillRect(x, bands.ticks.y - 1, 1, 4);
    const middle = Math.min(x, width - half - 1);
    if (middle - half < last + 8) continue;
    context.fillText(text, middle, below);
    last = middle + half;
  }
  context.fillText(name, left + inner / 2, below + 15);
}

/** The positions and labels of the ticks of X, and the name of the axis: times if known, otherwise indices. */
function marks(N, count, fps, times) {
  const last = times.at(-1) ?? 0;
  if (times.length) return { places: ticks(N, count).map((j) => [j, timeText(times[j], last)]), name: timeName(last) };
  if (!fps) return { places: ticks(N, count).map((j) => [j + 0.5, String(j)]), name: "x (index)" };
  const length = N / fps, rough = length / Math.max(2, count);
  const short = length < SHORT;
  const clocks = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400];
  const step = short ? rounded(rough) : clocks.find((t) => t >= rough) ?? Math.ceil(rough / 86400) * 86400;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const places = Array.from({ length: Math.floor(length / step + 1e-9) + 1 }, (_, k) =>
    [k * step * fps, short ? (k * step).toFixed(digits) : clock(k * step)]);
  return { places, name: timeName(length) };
}

const SHORT = 120; // up to here, plain seconds are easier to read

/** A time in a recording that ends at `last`: seconds, or a clock if it is long. */
const timeText = (seconds, last) => last < SHORT ? String(+seconds.toFixed(2)) : clock(seconds);

/** The same as a remark: with its unit, where a clock needs none. */
export const timeRemark = (seconds, last) => ` (${timeText(seconds, last)}${last < SHORT ? " s" : ""})`;

const timeName = (length) =>
  length < SHORT ? "time (seconds)" : length < 3600 ? "time (minutes:seconds)" : "time (hours:minutes:seconds)";

/** Round up to 1, 2 or 5 times a power of ten. */
function rounded(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].find((f) => f * power >= rough * (1 - 1e-9)) * power;
}

function ticks(n, count) {
  const step = Math.max(1, Math.round(rounded(n / Math.max(2, count))));
  return Array.from({ length: Math.ceil(n / step) }, (_, k) => k * step);
}

function clock(seconds) {
  const s = Math.floor(seconds), h = Math.floor(s / 3600), two = (n) => String(n).padStart(2, "0");
  return h ? `${h}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`;
}

// --- the legend ------------------------------------------------------------------------------------------------

/** The entries of the legend, as [text, ...colors]; a color of null means hatching. */
export function legendEntries({ info, settings, costs }, palette) {
  const entries = [["matched", palette.matched], ["dropped", palette.dropped, null]];
  if (info.truth) entries.push(["truth", palette.truth]);
  if (settings.window.kind !== "none") entries.push(["outside the window", palette.outside]);
  if (costs.levels.includes(255)) entries.push(["forbidden", palette.forbidden]);
  if (settings.gamma !== null) entries.push(["probability of a match", `rgba(${palette.heat}, 0.25)`, `rgb(${palette.heat})`]);
  return entries;
}

const wide = (context, [text, ...colors]) => 16 * colors.length + context.measureText(text).width + 14;

const scaleEnds = ({ low, high }) => [low, high].map((v) => String(Number(v.toPrecision(2))));

/** Break the entries into rows that fit; the color scale of costs comes first. */
function rows(context, entries, costs, width) {
  context.font = `12px ${FONT}`;
  const scale = ["match cost", ...scaleEnds(costs)].reduce((sum, text) => sum + context.measureText(text).width + 6, BAR + 6);
  const found = [{ x: 8 + scale + 14, entries: [] }];
  for (const entry of entries) {
    let row = found.at(-1);
    if (row.x + wide(context, entry) > width) found.push(row = { x: 8, entries: [] });
    row.entries.push([row.x, ...entry]);
    row.x += wide(context, entry);
  }
  return found;
}

export const legendHeight = (context, entries, costs, width) => rows(context, entries, costs, width).length * ROW;

function legend(context, at, { costs }, palette) {
  const [low, high] = scaleEnds(costs);
  let y = at.bands.legend.y + ROW / 2, x = 8;
  context.textAlign = "left";
  const say = (text) => { context.fillStyle = palette.soft; context.fillText(text, x, y); x += context.measureText(text).width + 6; };
  say("match cost");
  say(low);
  const bar = context.createLinearGradient(x, 0, x + BAR, 0);
  for (const [stop, v] of [[0, palette.cheap], [1, palette.dear]]) bar.addColorStop(stop, `rgb(${v},${v},${v})`);
  context.fillStyle = bar;
  context.fillRect(x, y - 6, BAR, 12);
  context.strokeStyle = palette.line;
  context.strokeRect(x + 0.5, y - 5.5, BAR - 1, 11);
  x += BAR + 6;
  say(high);
  for (const row of rows(context, at.entries, costs, at.width)) {
    for (const [place, text, ...colors] of row.entries) {
      x = place;
      for (const color of colors) {
        context.fillStyle = color ?? hatching(context, palette);
        context.fillRect(x, y - 6, 12, 12);
        if (!color) context.strokeRect(x + 0.5, y - 5.5, 11, 11);
        x += 16;
      }
      say(text);
    }
    y += ROW;
  }
}

/** The names of the curves, each in its color, above their band. */
export function curveNames(context, at, { info }, palette) {
  const { parts } = info.curves, { curves: band } = at.bands;
  if (!band) return;
  context.font = `11px ${FONT}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  let place = at.left;
  const full = parts.reduce((sum, text) => sum + context.measureText(text).width + 28, 0);
  parts.forEach((name, c) => {
    const text = c && full > at.inner ? name.split(" ").at(-1) : name; // "component 1", "2", "3" if space is scarce
    context.fillStyle = palette.series[c];
    context.fillRect(place, band.y + 6, 12, 2.5);
    context.fillText(text, place + 16, band.y + 7.5);
    place += context.measureText(text).width + 28;
  });
}

export const NAME_LINE = 14; // the height of a line of a name

/** How many lines the longest name needs: at most four. */
export function nameLines(context, names, width) {
  context.font = `12px ${FONT}`;
  return Math.max(...names.map((name, i) => wrapped(context, `${i + 1} ${name}`, width, 4).length));
}

/** Break a text into lines of a width; the last one is cut. */
function wrapped(context, text, width, most) {
  const found = [];
  for (const word of text.split(/\s+/)) {
    const longer = found.length ? `${found.at(-1)} ${word}` : word;
    if (found.length && (context.measureText(longer).width <= width || found.length === most)) found[found.length - 1] = longer;
    else found.push(word);
  }
  return found.map((line) => fitted(context, line, width));
}

/** Cut a text to a width. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return `${text.slice(0, end).trimEnd()}…`;
}

/** The pattern for drops: orange lines on a transparent background. */
export function hatching(context, palette) {
  const tile = new OffscreenCanvas(10, 10), pen = tile.getContext("2d");
  pen.strokeStyle = palette.dropped;
  pen.lineWidth = 1.1;
  for (const k of [-10, 0, 10]) {
    pen.beginPath();
    pen.moveTo(k - 1, 11);
    pen.lineTo(k + 11, -1);
    pen.stroke();
  }
  return context.createPattern(tile, "repeat");
}
