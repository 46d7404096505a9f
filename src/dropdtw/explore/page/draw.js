// The picture: X to the right, Z downwards, as in the library's plots. One canvas, so that it can be saved as it is.

export const BLUE = "#0072b2", ORANGE = "#d55e00", GREEN = "#009e73", FORBIDDEN = "#784678";
// Curves take none of the colours that mean something.
const CURVES = ["#6a2fa0", "#55585f", "#c23a86"], CURVES_DARK = ["#c29df0", "#d5d9e0", "#ff8fc4"];

export const PALETTES = {
  light: { ground: "#ffffff", text: "#1b1e23", soft: "#525a66", line: "#c9ced6", cheap: 255, dear: 90, heat: [0, 90, 160],
           heatGround: "#f2f4f7", curves: CURVES, halo: "rgba(255,255,255,.9)", cursor: "#000000", drop: "rgba(213,94,0,.16)", hatch: "#d55e00", outside: "rgba(120,130,150,.55)" },
  dark: { ground: "#16181c", text: "#e8eaee", soft: "#aab2bf", line: "#3d434d", cheap: 225, dear: 34, heat: [105, 195, 255],
          heatGround: "#1f2228", curves: CURVES_DARK, halo: "rgba(255,255,255,.85)", cursor: "#ffffff", drop: "rgba(226,104,10,.25)", hatch: "#ff8a3c", outside: "rgba(50,70,110,.6)" },
};

/** Where everything goes, for a picture so many pixels wide. */
export function layout(width, info, posterior, z_too) {
  const [K, N] = info.shape, narrow = width < 640, named = info.names.length > 0;
  const left = named ? (narrow ? 118 : 190) : narrow ? 84 : 108, right = posterior && z_too ? 56 : 12;
  const tall = Math.round(Math.min(Math.max(K * 20, 130), narrow ? 260 : 300));
  const bands = {};
  let y = 8;
  const band = (name, height, gap = 6) => { bands[name] = { y, height }; y += height + gap; };
  band("signal", 62);
  band("segments", 20, info.truth ? 3 : 6);
  if (info.truth) band("truth", 14);
  band("matrix", tall, posterior ? 10 : 2);
  if (posterior) {
    band("posterior", Math.round(Math.max(tall * 0.55, 80)));
    band("drop", 34, 2);
  }
  band("ticks", 34, 4);
  band("legend", narrow ? 54 : 18, 4);
  return { width, height: y, left, right, named, inner: width - left - right, bands, beside: right > 12, K, N };
}

/** The match costs as an image; forbidden ones (255) are purple. */
export function greyImage({ rows, columns, levels }, palette) {
  return image(rows, columns, (data) => {
    const span = palette.dear - palette.cheap;
    for (let k = 0; k < levels.length; k++) {
      const v = levels[k];
      const grey = v === 255 ? -1 : palette.cheap + span * v / 254;
      data[4 * k] = grey < 0 ? 120 : grey;
      data[4 * k + 1] = grey < 0 ? 70 : grey;
      data[4 * k + 2] = grey < 0 ? 120 : grey;
      data[4 * k + 3] = 255;
    }
  });
}

/** Probabilities as an image: nothing where 0, and small ones still to be seen. */
export function heatImage({ rows, columns, match }, palette) {
  const alpha = new Uint8Array(256).map((_, p) => 255 * Math.sqrt(p / 255));
  return image(rows, columns, (data) => {
    const words = new Uint32Array(data.buffer), [r, g, b] = palette.heat;
    const colour = r | g << 8 | b << 16;
    for (let k = 0; k < match.length; k++) words[k] = alpha[match[k]] << 24 | colour;
  });
}

function image(rows, columns, fill) {
  const canvas = new OffscreenCanvas(columns, rows), context = canvas.getContext("2d");
  const pixels = context.createImageData(columns, rows);
  fill(pixels.data);
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/** Draw all of it. state: info, costs (header), grey, found (an alignment or null), posterior, heat, settings. */
export function paint(context, at, state, palette) {
  const { bands, left, inner, width, height, K, N } = at, { found, info } = state;
  const toX = (j) => left + j / N * inner;
  context.fillStyle = palette.ground;
  context.fillRect(0, 0, width, height);
  const toY = (i, name) => bands[name].y + i / K * bands[name].height;
  const area = (name) => [left, bands[name].y, inner, bands[name].height];

  // Match costs.
  blit(context, state.grey, area("matrix"));
  outside(context, state, at, toX, toY, palette);

  // Signals, in the same scale for both.
  const curves = info.curves, all = [...curves.x, ...curves.z].flat().filter((v) => v !== null);
  const low = Math.min(...all.length ? [all.reduce((a, b) => Math.min(a, b))] : [0]);
  const high = all.length ? all.reduce((a, b) => Math.max(a, b)) : 1;
  const share = (v) => (v - low) / (high - low || 1);
  const s = bands.signal, m = bands.matrix, wide = left - 48;
  context.lineWidth = 1.2;
  context.lineJoin = "round";

  // What is dropped is tinted beside the costs and hatched over them, so that they still show.
  if (found) {
    const hatch = hatching(context, palette), rim = at.named ? left - 6 : 40;
    for (const [start, stop] of found.runs_x) {
      context.fillStyle = palette.drop;
      fillAtLeast(context, toX(start), s.y, toX(stop) - toX(start), s.height);
      context.fillStyle = hatch;
      fillAtLeast(context, toX(start), m.y, toX(stop) - toX(start), m.height);
    }
    for (const [start, stop] of found.runs_z) {
      const y = toY(start, "matrix"), high = toY(stop, "matrix") - y;
      context.fillStyle = palette.drop;
      fillAtLeast(context, rim, y, left - rim, high);
      context.fillStyle = hatch;
      fillAtLeast(context, left, y, inner, high);
    }
  }
  curves.x.forEach((curve, c) => {
    context.strokeStyle = palette.curves[c];
    stroke(context, curve, (k, v) => [left + (k + 0.5) / curve.length * inner, s.y + s.height - 3 - share(v) * (s.height - 6)]);
  });
  if (!at.named) curves.z.forEach((curve, c) => {
    context.strokeStyle = palette.curves[c];
    stroke(context, curve, (k, v) => [42 + share(v) * (wide - 4), m.y + (k + 0.5) / curve.length * m.height]);
  });

  if (found) {
    walk(context, found.visits, toX, toY, palette);
    // Matches, with a pale edge so that they show on dark costs.
    const w = inner / N, h = m.height / K, size = Math.max(3, Math.min(w, h, 12)), edge = size > 5 ? 1.5 : 1;
    for (const [colour, grow] of [[palette.halo, edge], [BLUE, 0]]) {
      context.fillStyle = colour;
      for (let k = 0; k < found.pairs.length; k += 2) {
        const dx = Math.max(size, Math.min(w - 1, 3 * size)) + 2 * grow, dy = size + 2 * grow;
        context.fillRect(toX(found.pairs[k + 1] + 0.5) - dx / 2, toY(found.pairs[k] + 0.5, "matrix") - dy / 2, dx, dy);
      }
    }
    // Segments of X.
    context.fillStyle = ORANGE;
    for (const [start, stop] of found.runs_x) fillAtLeast(context, toX(start), bands.segments.y + 6, toX(stop) - toX(start), bands.segments.height - 12);
    for (let k = 0; k < found.segments.length; k += 3)
      block(context, found.segments[k], toX(found.segments[k + 1]), toX(found.segments[k + 2]), bands.segments, [BLUE, "#3f93c8"]);
  }
  if (info.truth) for (const [label, start, stop] of state.truths) block(context, label, toX(start), toX(stop), bands.truth, [GREEN, "#3fb795"]);

  if (bands.posterior) {
    context.fillStyle = palette.heatGround;
    context.fillRect(...area("posterior"));
    context.fillRect(...area("drop"));
    if (state.posterior && state.heat) {
      blit(context, state.heat, area("posterior"), true);
      const d = bands.drop, p = state.posterior;
      context.fillStyle = ORANGE;
      context.beginPath();
      context.moveTo(left, d.y + d.height);
      for (let j = 0; j < N; j++) {
        context.lineTo(toX(j), d.y + d.height * (1 - p.drop_x[j]));
        context.lineTo(toX(j + 1), d.y + d.height * (1 - p.drop_x[j]));
      }
      context.lineTo(left + inner, d.y + d.height);
      context.fill();
      for (let i = 0; at.beside && i < K; i++) {
        if (p.drop_z[i] > 0.004) fillAtLeast(context, left + inner + 8, toY(i, "posterior"), 40 * p.drop_z[i], bands.posterior.height / K);
      }
    }
    context.strokeStyle = palette.line;
    if (at.beside) context.strokeRect(left + inner + 7.5, bands.posterior.y - 0.5, 41, bands.posterior.height + 1);
  }
  context.strokeStyle = palette.line;
  context.lineWidth = 1;
  for (const name of ["signal", "matrix", "posterior", "drop"])
    if (bands[name]) context.strokeRect(left - 0.5, bands[name].y - 0.5, inner + 1, bands[name].height + 1);
  curveNames(context, at, state, palette);
  lettering(context, at, state, palette, toX, toY);
}

function lettering(context, at, state, palette, toX, toY) {
  const { bands, left, inner, width, K, N } = at;
  context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = palette.text;
  const name = (text, band, dy = 0.5) => { context.textAlign = "right"; context.fillText(text, left - 8, band.y + band.height * dy); };
  name("X", bands.signal);
  name(at.left > 90 ? "segments" : "segm.", bands.segments);
  if (bands.truth) name("truth", bands.truth);
  if (bands.posterior) {
    name("posterior", bands.posterior);
    name("P(drop x)", bands.drop);
    if (at.beside) {
      context.textAlign = "center";
      context.fillText("P(drop z)", left + inner + 28, bands.posterior.y + bands.posterior.height + 11);
    }
  }
  context.fillStyle = palette.soft;
  context.textAlign = "center";
  const below = bands.ticks.y + 9;
  const { fps, times, names } = state.info, timed = Boolean(fps || times.length);
  for (const [j, text] of marks(N, inner / 70, fps, times)) {
    context.fillRect(toX(j), bands.ticks.y - 1, 1, 4);
    context.fillText(text, toX(j), below + 2);
  }
  context.fillText(timed ? "time (minutes:seconds)" : "x (index)", left + inner / 2, below + 17);
  context.textAlign = "right";
  if (at.named) {
    const step = Math.max(1, Math.ceil(15 / (bands.matrix.height / K)));
    for (let i = 0; i < K; i += step) context.fillText(fitted(context, `${i} ${names[i]}`, left - 14), left - 10, toY(i + 0.5, "matrix"));
  } else {
    for (const i of ticks(K, bands.matrix.height / 26)) context.fillText(i, 36, toY(i + 0.5, "matrix"));
    context.save();
    context.translate(8, bands.matrix.y + bands.matrix.height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    if (K <= 1000) context.fillText("z (index)", 0, 0); // longer numbers need the room
    context.restore();
  }
  context.textAlign = "right";
  context.fillStyle = palette.text;

  // Legend: what greys mean.
  const { low, high } = state.costs;
  let y = bands.legend.y + 9;
  context.textAlign = "left";
  let x = left;
  const say = (text) => { context.fillStyle = palette.soft; context.fillText(text, x, y); x += context.measureText(text).width + 6; };
  say(width < 640 ? "cost" : "match cost");
  say(Number(low.toPrecision(3)));
  const bar = context.createLinearGradient(x, 0, x + 70, 0);
  for (const [stop, v] of [[0, palette.cheap], [1, palette.dear]]) bar.addColorStop(stop, `rgb(${v},${v},${v})`);
  context.fillStyle = bar;
  context.fillRect(x, y - 6, 70, 12);
  context.strokeStyle = palette.line;
  context.strokeRect(x + 0.5, y - 5.5, 69, 11);
  x += 76;
  say(Number(high.toPrecision(3)));
  const entries = [[BLUE, "matched"], [ORANGE, "dropped"], [null, "dropped, over costs"]];
  if (bands.truth) entries.push([GREEN, "truth"]);
  if (state.settings.window.kind !== "none") entries.push([palette.outside, "outside"]);
  if (state.costs.levels.includes(255)) entries.push([FORBIDDEN, "forbidden"]);
  for (const [colour, text] of entries) {
    x += 8;
    if (x + 16 + context.measureText(text).width > width) [x, y] = [8, y + 18];
    context.fillStyle = colour ?? hatching(context, palette);
    context.fillRect(x, y - 6, 12, 12);
    if (!colour) context.strokeRect(x + 0.5, y - 5.5, 11, 11);
    x += 16;
    say(text);
  }
}

/** What the curves are, each in its colour, in the corner of their band. */
function curveNames(context, at, { info }, palette) {
  const { x, parts } = info.curves, s = at.bands.signal;
  if (!x.length || !parts) return;
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  context.textAlign = "left";
  let place = at.left + 6;
  parts.forEach((text, c) => {
    const wide = context.measureText(text).width;
    if (place + wide + 18 > at.left + at.inner) return;
    context.fillStyle = palette.ground;
    context.globalAlpha = 0.75;
    context.fillRect(place - 2, s.y + 2, wide + 20, 14);
    context.globalAlpha = 1;
    context.fillStyle = palette.curves[c];
    context.fillRect(place, s.y + 8, 12, 2.5);
    context.fillText(text, place + 16, s.y + 9.5);
    place += wide + 28;
  });
}

/** Orange lines on nothing, for what is dropped. */
function hatching(context, palette) {
  const tile = new OffscreenCanvas(10, 10), pen = tile.getContext("2d");
  pen.strokeStyle = palette.hatch;
  pen.lineWidth = 1.1;
  for (const k of [-10, 0, 10]) {
    pen.beginPath();
    pen.moveTo(k - 1, 11);
    pen.lineTo(k + 11, -1);
    pen.stroke();
  }
  return context.createPattern(tile, "repeat");
}

/** A text cut to a width. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return `${text.slice(0, end).trimEnd()}…`;
}

export function clock(seconds) {
  const s = Math.floor(seconds), h = Math.floor(s / 3600), two = (n) => String(n).padStart(2, "0");
  return h ? `${h}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`;
}

/** Places on the axis of X with what stands there: times where there are times, otherwise numbers. */
function marks(N, count, fps, times) {
  if (times.length) return ticks(N, count).map((j) => [j, clock(times[j])]);
  if (!fps) return ticks(N, count).map((j) => [j + 0.5, j]);
  const length = N / fps, rough = length / Math.max(2, count);
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400].find((t) => t >= rough) ?? 86400;
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, k) => [k * step * fps, clock(k * step)]);
}

/** The lines that lead to a cell. */
export function paintCursor(context, at, cell, palette) {
  context.clearRect(0, 0, at.width, at.height);
  if (!cell) return;
  const { bands, left, inner, K, N } = at;
  const x = left + (cell.j + 0.5) / N * inner, w = Math.max(inner / N, 4);
  const last = bands.drop ?? bands.matrix;
  for (const [colour, wide] of [[palette.ground, 3], [palette.cursor, 1]]) {
    context.strokeStyle = colour;
    context.lineWidth = wide;
    context.beginPath();
    context.moveTo(x, bands.signal.y);
    context.lineTo(x, last.y + last.height);
    for (const name of ["matrix", "posterior"]) {
      if (!bands[name]) continue;
      const y = bands[name].y + (cell.i + 0.5) / K * bands[name].height;
      context.moveTo(name === "matrix" && !at.named ? 40 : left, y);
      context.lineTo(left + inner, y);
    }
    context.stroke();
    for (const name of ["matrix", "posterior"]) {
      if (!bands[name]) continue;
      const h = Math.max(bands[name].height / K, 4), y = bands[name].y + (cell.i + 0.5) / K * bands[name].height;
      context.strokeRect(x - w / 2 - 1, y - h / 2 - 1, w + 2, h + 2);
    }
  }
}

/** The cell under a point; i is null beside the matrices, j too where the point is nowhere. */
export function cellAt(at, x, y) {
  const { bands, left, inner, K, N } = at;
  const inside = (v, n) => Math.max(0, Math.min(n - 1, Math.floor(v)));
  const j = x >= left - 2 && x <= left + inner + 2 ? inside((x - left) / inner * N, N) : null;
  for (const name of ["matrix", "posterior"]) {
    const band = bands[name];
    if (band && y >= band.y && y <= band.y + band.height) return { i: inside((y - band.y) / band.height * K, K), j };
  }
  return { i: null, j };
}

/** The histogram of match costs, with the drop costs as lines. */
export function paintHistogram(context, width, height, { low, high, all, best }, prices, palette) {
  context.clearRect(0, 0, width, height);
  const floor = height - 1;
  for (const [counts, colour, filled] of [[all, palette.soft, true], [best, BLUE, false]]) {
    const top = Math.max(1, ...counts), w = width / counts.length;
    context.fillStyle = colour;
    context.globalAlpha = filled ? 0.45 : 0.85;
    counts.forEach((n, k) => {
      const h = n ? Math.max(1, n / top * (floor - 4)) : 0;
      filled ? context.fillRect(k * w, floor - h, w - 0.5, h) : context.fillRect(k * w + w * 0.25, floor - h, w * 0.5, h);
    });
  }
  context.globalAlpha = 1;
  context.fillStyle = palette.line;
  context.fillRect(0, floor, width, 1);
  context.fillStyle = ORANGE;
  for (const price of prices) {
    const x = (price - low) / (high - low || 1) * width;
    context.fillRect(Math.max(0, Math.min(width - 2.5, x - 1.25)), 0, 2.5, height);
  }
}

/** From step to step, in the order in which they were done; nothing where Z is a list. */
function walk(context, visits, toX, toY, palette) {
  if (!visits) return;
  for (const [colour, wide] of [[palette.halo, 4], [BLUE, 1.5]]) {
    context.strokeStyle = colour;
    context.lineWidth = wide;
    context.beginPath();
    for (let k = 0; k < visits.length; k += 3) {
      const y = toY(visits[k] + 0.5, "matrix");
      k ? context.lineTo(toX(visits[k + 1] + 0.5), y) : context.moveTo(toX(visits[1] + 0.5), y);
      context.lineTo(toX(visits[k + 2] - 0.5), y);
    }
    context.stroke();
  }
}

function outside(context, { settings }, at, toX, toY, palette) {
  const { kind, value } = settings.window, { K, N, bands, left, inner } = at;
  if (kind === "none" || K === 1) return;
  const width = kind === "share" ? value * N : value, h = bands.matrix.height / K;
  context.fillStyle = palette.outside;
  for (let i = 0; i < K; i++) {
    const centre = i * (N - 1) / (K - 1);
    const start = Math.max(0, Math.ceil(centre - width - 1e-9)), stop = Math.min(N, Math.floor(centre + width + 1e-9) + 1);
    context.fillRect(left, toY(i, "matrix"), toX(start) - left, h);
    context.fillRect(toX(stop), toY(i, "matrix"), left + inner - toX(stop), h);
  }
}

function blit(context, picture, [x, y, w, h], thin = false) {
  if (!picture) return;
  context.imageSmoothingEnabled = picture.width > w * devicePixelRatio || picture.height > h * devicePixelRatio;
  context.imageSmoothingQuality = "medium";
  context.drawImage(picture, x, y, w, h);
  if (context.imageSmoothingEnabled && thin) context.drawImage(picture, x, y, w, h); // what is fine would fade
}

function block(context, label, x, end, band, colours) {
  context.fillStyle = colours[label % 2];
  fillAtLeast(context, x, band.y, end - x - (end - x > 6 ? 1 : 0), band.height);
  const text = String(label);
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  if (context.measureText(text).width + 4 > end - x) return;
  context.fillStyle = label % 2 ? "#000000" : "#ffffff";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, (x + end) / 2, band.y + band.height / 2 + 0.5);
}

function fillAtLeast(context, x, y, w, h) {
  context.fillRect(x, y, Math.max(w, 1), Math.max(h, 1));
}

function stroke(context, curve, place) {
  context.beginPath();
  let pen = false;
  curve.forEach((v, k) => {
    if (v === null) { pen = false; return; }
    const [x, y] = place(k, v);
    pen ? context.lineTo(x, y) : context.moveTo(x, y);
    pen = true;
  });
  if (curve.length === 1 && curve[0] !== null) {
    const [x, y] = place(0, curve[0]);
    context.fillStyle = context.strokeStyle;
    context.fillRect(x - 2, y - 2, 4, 4);
  }
  context.stroke();
}

function ticks(n, count) {
  const rough = n / Math.max(2, count), power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, Math.round([1, 2, 5, 10].find((f) => f * power >= rough) * power));
  return Array.from({ length: Math.ceil(n / step) }, (_, k) => k * step);
}
