// The controls: reading and writing their values, and enabling those that the data and the method support.

const $ = (id) => document.getElementById(id);
const SIDES = ["drop_x", "drop_z", "threshold", "window"];
const CHARGES = ["open_x", "open_z", "warp"];
const FLAGS = ["one_to_many", "many_to_one", "contiguous"];

export const short = (value, digits = 4) => String(Number(value.toPrecision(digits)));

/** Set up the controls for the loaded data. `changed` is called whenever a value changes. */
export function controls(info, changed) {
  const [K, N] = info.shape;
  let costs = { low: 0, high: 1, gamma: 1 };
  const kept = {}; // the last number of each kind, for each side
  const charged = { open_x: 0, open_z: 0, warp: 0 };

  for (const name of info.matches) $("match").add(new Option(name, name));
  $("match-row").hidden = !info.matches.length;
  $("window-row").hidden = Boolean(info.order); // steps in another order do not follow the diagonal
  for (const name of Object.keys(info.methods)) $("method").add(new Option(name, name));
  for (const side of info.given) $(`${side}-kind`).add(new Option("from the file, one per element", "given"));

  function limits(side, kind) {
    if (kind === "percentile") return [0, 100, 0.5];
    if (kind === "share") return [0.01, 1, 0.01];
    if (kind === "columns") return [0, Math.max(1, N - 1), 1];
    const low = Math.min(0, costs.low), high = Math.max(costs.high, low + 1e-9);
    return [low, high, 10 ** Math.floor(Math.log10((high - low) / 400))];
  }

  function usual(side, kind) {
    if (kind === "percentile") return 30;
    if (kind === "share") return 0.2;
    if (kind === "columns") return Math.max(1, Math.round(N / 5));
    return Number(short((costs.low + costs.high) / 2, 3));
  }

  function showValue(side, value) {
    const kind = $(`${side}-kind`).value, range = $(`${side}-range`), number = $(`${side}-number`);
    const numeric = kind !== "none" && kind !== "given";
    range.parentElement.hidden = !numeric;
    if (!numeric) return;
    [range.min, range.max, range.step] = limits(side, kind);
    range.value = value;
    number.value = value;
    (kept[side] ??= {})[kind] = value;
  }

  /** The maximum of a slider; a run may cost as much as several drops. The scale is quadratic, finest near 0. */
  const most = (name) => (name === "warp" ? 1 : 5) * Math.max(costs.high - Math.min(0, costs.low), 1e-9);

  function moveCharge(name, value) {
    charged[name] = value;
    $(`${name}-range`).value = Math.sqrt(value / most(name));
    $(`${name}-range`).setAttribute("aria-valuetext", short(value));
  }

  function showCharge(name, value) {
    $(`${name}-number`).value = value;
    moveCharge(name, value);
  }

  for (const name of CHARGES) {
    const range = $(`${name}-range`), number = $(`${name}-number`);
    range.addEventListener("input", () => {
      showCharge(name, Number(short(most(name) * range.valueAsNumber ** 2, 3)));
      changed();
    });
    number.addEventListener("input", () => {
      if (!(number.valueAsNumber >= 0) || !Number.isFinite(number.valueAsNumber)) return;
      moveCharge(name, number.valueAsNumber);
      changed();
    });
  }
  for (const side of SIDES) {
    const kind = $(`${side}-kind`), range = $(`${side}-range`), number = $(`${side}-number`);
    kind.addEventListener("change", () => {
      showValue(side, kept[side]?.[kind.value] ?? usual(side, kind.value));
      adapt();
      changed();
    });
    range.addEventListener("input", () => {
      showValue(side, Number(Number(range.value).toPrecision(6)));
      changed();
    });
    number.addEventListener("input", () => {
      if (!Number.isFinite(number.valueAsNumber)) return;
      range.value = number.valueAsNumber;
      (kept[side] ??= {})[kind.value] = number.valueAsNumber;
      changed();
    });
  }
  for (const id of [...FLAGS, "method", "match", "posterior"]) $(id).addEventListener("change", () => { adapt(); changed(); });
  $("gamma-range").addEventListener("input", () => {
    $("gamma-number").value = short(scale() * 10 ** $("gamma-range").valueAsNumber, 3);
    changed();
  });
  $("gamma-number").addEventListener("input", () => {
    if (!($("gamma-number").valueAsNumber > 0)) return;
    $("gamma-range").value = Math.log10($("gamma-number").valueAsNumber / scale());
    changed();
  });
  $("controls").addEventListener("submit", (event) => event.preventDefault());

  const scale = () => costs.gamma * 20;
  const number = (side) => $(`${side}-number`).valueAsNumber;

  /** Whether an extra cost applies: the method supports it, and the elements can be dropped. */
  function pays(name) {
    const method = info.methods[$("method").value];
    if (name === "open_z" && info.order?.partial) return false; // under a partial order, dropped z form no runs
    return name === "warp" ? method.warp : method.opening && $(`drop_${name.at(-1)}-kind`).value !== "none";
  }

  /** Enable or show only what the method supports. */
  function adapt() {
    const method = info.methods[$("method").value];
    $("method-note").textContent = method.summary;
    for (const side of ["drop_x", "drop_z"])
      for (const part of ["kind", "range", "number"]) $(`${side}-${part}`).disabled = !method.drops;
    $("suggest").disabled = !method.drops && !method.threshold;
    $("threshold").hidden = !method.threshold;
    for (const name of CHARGES) $(name).hidden = !pays(name);
    for (const flag of FLAGS) $(flag).disabled = method.one_to_one || method.fixes_moves;
    $("gamma").hidden = !$("posterior").checked;
  }

  return {
    adapt,
    /** Set all controls. */
    write(settings) {
      if (info.matches.length) {
        if (![...$("match").options].some((option) => option.value === settings.match)) $("match").add(new Option(settings.match, settings.match));
        $("match").value = settings.match;
      }
      $("method").value = settings.method;
      for (const side of SIDES) {
        const { kind, value } = settings[side];
        $(`${side}-kind`).value = side === "threshold" && kind === "none" ? "percentile" : kind;
        showValue(side, kind === "none" || kind === "given" ? usual(side, $(`${side}-kind`).value) : value);
      }
      for (const name of CHARGES) showCharge(name, settings[name]);
      for (const flag of FLAGS) $(flag).checked = settings[flag];
      $("posterior").checked = settings.gamma !== null;
      const gamma = settings.gamma ?? costs.gamma;
      $("gamma-number").value = gamma;
      $("gamma-range").value = Math.log10(gamma / scale());
      adapt();
    },
    /** The settings, as the server takes them. */
    read() {
      const method = info.methods[$("method").value];
      const choice = (side, counts) => {
        const kind = $(`${side}-kind`).value;
        if (!counts || kind === "none") return { kind: "none", value: 0 };
        return { kind, value: kind === "given" ? 0 : kept[side][kind] };
      };
      return {
        match: info.matches.length ? $("match").value : null,
        method: $("method").value,
        drop_x: choice("drop_x", method.drops),
        drop_z: choice("drop_z", method.drops),
        threshold: choice("threshold", method.threshold),
        window: choice("window", true),
        one_to_many: method.fixes_moves || $("one_to_many").checked,
        many_to_one: method.fixes_moves || $("many_to_one").checked,
        contiguous: !method.fixes_moves && $("contiguous").checked,
        ...Object.fromEntries(CHARGES.map((name) => [name, pays(name) ? charged[name] : 0])),
        gamma: $("posterior").checked ? $("gamma-number").valueAsNumber || costs.gamma : null,
      };
    },
    /** Apply a suggested drop cost, as the kind that is chosen. */
    suggest(found) {
      const method = info.methods[$("method").value];
      const sides = method.threshold ? ["threshold"] : ["drop_x"];
      if (method.one_to_one && method.drops || $("drop_z-kind").value !== "none" && method.drops) sides.push("drop_z");
      for (const side of sides) {
        const kind = $(`${side}-kind`);
        if (kind.value !== "percentile") kind.value = "constant";
        showValue(side, found[kind.value]);
      }
      adapt();
    },
    /** Apply suggested opening costs. */
    open(found) {
      for (const [name, value] of Object.entries(found)) showCharge(name, value);
    },
    /** Fit the ranges of the sliders to new match costs. */
    fit({ histogram, gamma }) {
      costs = { low: histogram.low, high: histogram.high, gamma };
      for (const side of SIDES) showValue(side, number(side));
      for (const name of CHARGES) showCharge(name, charged[name]);
    },
    /** Reset constants, extra costs and γ after a change of the match cost: the old values mean nothing now. */
    forget(gamma, found) {
      for (const name of CHARGES) showCharge(name, 0);
      for (const side of SIDES) {
        if (kept[side]) delete kept[side].constant;
        if ($(`${side}-kind`).value === "constant") showValue(side, found?.constant ?? usual(side, "constant"));
      }
      $("gamma-number").value = gamma;
      $("gamma-range").value = Math.log10(gamma / scale());
    },
  };
}
