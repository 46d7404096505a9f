// Draw the picture: X from left to right, Z from top to bottom, as in the library's plots. It is a single canvas, so
// that it can be saved.

import { curveNames, hatching, legendEntries, legendHeight, lettering, nameLines, NAME_LINE } from "./letters.js";
import { words } from "./words.js";

/** Shades that only the picture uses, in addition to the colors from the server. */
const TONES = {
  light: { cheap: 255, dear: 90, heat: [0, 114, 178], halo: "rgba(255,255,255,.9)", cursor: "#000000", outside: "rgba(120,130,150,.55)" },
  dark: { cheap: 225, dear: 34, heat: [105, 195, 255], halo: "rgba(255,255,255,.85)", cursor: "#ffffff", outside: "rgba(50,70,110,.6)" },
};

/** All colors of a scheme: "light" or "dark". */
export const colors = (info, scheme) => ({ ...info.palette[scheme], ...TONES[scheme] });

/** Compute the layout of a picture that is `width` pixels wide. */
export function layout(context, width, state, palette) {
  const { info, settings } = state, posterior = settings.gamma !== null, z_too = settings.drop_z.kind !== "none";
  const [K, N] = info.shape, narrow = width < 640, named = info.names.length > 0;
  const left = named ? (narrow ? 124 : 190) : narrow ? 84 : 108, beside = posterior && z_too ? (narrow ? 26 : 40) : 0;
  const right = beside ? beside + (narrow ? 18 : 22) : 12;
  const most = named ? nameLines(context, info.names, left - 14) : 1; // lines of the longest name
  const row = Math.max(20, most * NAME_LINE + 4), limit = narrow && !named ? 260 : named && most > 1 ? (narrow ? 700 : 480) : 300;
  const tall = Math.round(Math.min(Math.max(K * row, 130), limit));
  const bands = {};
  let y = 8;
  const band = (name, height, gap = 6) => { bands[name] = { y, height }; y += height + gap; };
  if (info.curves.x.length && info.curves.parts) band("curves", 14, 2);
  band("signal", 62);
  band("segments", 20, info.truth ? 3 : 6);
  if (info.truth) band("truth", 14);
  band("matrix", tall, posterior ? 10 : 2);
  if (posterior) {
    band("posterior", Math.round(Math.max(tall * 0.55, 80)));
    band("drop", 34, 2);
  }
  band("ticks", 34, 4);
  const entries = legendEntries(state, palette);
  band("legend", legendHeight(context, entries, state.costs, width), 4);
  return { width, height: y, left, right, named, entries, inner: width - left - right, bands, beside, K, N, first: words(info).first };
}

/** The match costs as an image; forbidden matches (255) have their own color. */
export function grayImage({ rows, columns, levels }, palette) {
  const forbidden = [1, 3, 5].map((k) => parseInt(palette.forbidden.slice(k, k + 2), 16));
  return image(rows, columns, (data) => {
    const span = palette.dear - palette.cheap;
    for (let k = 0; k < levels.length; k++) {
      const v = levels[k], gray = palette.cheap + span * v / 254;
      for (let c = 0; c < 3; c++) data[4 * k + c] = v === 255 ? forbidden[c] : gray;
      data[4 * k + 3] = 255;
    }
  });
}

/** Probabilities as an image: transparent at 0, with small values still visible. */
export function heatImage({ rows, columns, match }, palette) {
  const alpha = new Uint8Array(256).map((_, p) => 255 * Math.sqrt(p / 255));
  return image(rows, columns, (data) => {
    const words = new Uint32Array(data.buffer), [r, g, b] = palette.heat;
    const color = r | g << 8 | b << 16;
    for (let k = 0; k < match.length; k++) words[k] = alpha[match[k]] << 24 | color;
  });
}

function image(rows, columns, fill) {
  const canvas = new OffscreenCanvas(columns, rows), context = canvas.getContext("2d");
  const pixels = context.createImageData(columns, rows);
  fill(pixels.data);
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/** Draw everything. state: info, costs (header), gray, found (an alignment or null), posterior, heat, settings. */
export function paint(context, at, state, palette) {
  const { bands, left, inner, width, height } = at, { found, info } = state;
  context.fillStyle = palette.ground;
  context.fillRect(0, 0, width, height);
  blit(context, state.gray, area(at, "matrix"));
  outside(context, state, at, palette);
  if (found) dropped(context, at, found, palette);
  signals(context, at, info.curves, palette);
  if (found) {
    walk(context, at, found.visits, palette);
    matches(context, at, found, palette);
    segments(context, at, found, palette);
  }
  for (const [label, start, stop] of state.truths) block(context, at, label, start, stop, bands.truth, palette, "truth");
  if (bands.posterior) chances(context, at, state, palette);
  context.strokeStyle = palette.line;
  context.lineWidth = 1;
  for (const name of ["signal", "matrix", "posterior", "drop"])
    if (bands[name]) context.strokeRect(left - 0.5, bands[name].y - 0.5, inner + 1, bands[name].height + 1);
  curveNames(context, at, state, palette);
  lettering(context, at, state, palette);
}

const toX = ({ left, inner, N }, j) => left + j / N * inner;
const toY = ({ bands, K }, i, name = "matrix") => bands[name].y + i / K * bands[name].height;
const area = ({ left, inner, bands }, name) => [left, bands[name].y, inner, bands[name].height];

/** Tint dropped elements next to the costs, and hatch them on the costs, so that the costs stay visible. */
function dropped(context, at, { runs_x, runs_z }, palette) {
  const { left, inner, bands: { signal, matrix } } = at;
  const hatch = hatching(context, palette), rim = at.named ? left - 6 : 40;
  const drop = (beside, over) => {
    context.fillStyle = palette.dropped;
    context.globalAlpha = 0.2;
    fillAtLeast(context, ...beside);
    context.globalAlpha = 1;
    context.fillStyle = hatch;
    fillAtLeast(context, ...over);
  };
  for (const [start, stop] of runs_x) {
    const x = toX(at, start), wide = toX(at, stop) - x;
    drop([x, signal.y, wide, signal.height], [x, matrix.y, wide, matrix.height]);
  }
  for (const [start, stop] of runs_z) {
    const y = toY(at, start), high = toY(at, stop) - y;
    drop([rim, y, left - rim, high], [left, y, inner, high]);
  }
}

/** The curves of both sequences, on the same scale. */
function signals(context, at, curves, palette) {
  const { left, inner, bands: { signal: s, matrix: m } } = at, wide = left - 48;
  const all = [...curves.x, ...curves.z].flat().filter((v) => v !== null);
  const low = all.length ? all.reduce((a, b) => Math.min(a, b)) : 0;
  const high = all.length ? all.reduce((a, b) => Math.max(a, b)) : 1;
  const share = (v) => (v - low) / (high - low || 1);
  context.lineWidth = 1.2;
  context.lineJoin = "round";
  curves.x.forEach((curve, c) => {
    context.strokeStyle = palette.series[c];
    stroke(context, curve, (k, v) => [left + (k + 0.5) / curve.length * inner, s.y + s.height - 3 - share(v) * (s.height - 6)]);
  });
  if (!at.named) curves.z.forEach((curve, c) => {
    context.strokeStyle = palette.series[c];
    stroke(context, curve, (k, v) => [42 + share(v) * (wide - 4), m.y + (k + 0.5) / curve.length * m.height]);
  });
}

/** Matches, with a pale edge so that they stand out on dark costs. */
function matches(context, at, { pairs }, palette) {
  const w = at.inner / at.N, h = at.bands.matrix.height / at.K;
  const size = Math.max(3, Math.min(w, h, 12)), edge = size > 5 ? 1.5 : 1;
  for (const [color, grow] of [[palette.halo, edge], [palette.matched, 0]]) {
    context.fillStyle = color;
    for (let k = 0; k < pairs.length; k += 2) {
      const dx = Math.max(size, Math.min(w - 1, 3 * size)) + 2 * grow, dy = size + 2 * grow;
      context.fillRect(toX(at, pairs[k + 1] + 0.5) - dx / 2, toY(at, pairs[k] + 0.5) - dy / 2, dx, dy);
    }
  }
}

/** The row of segments: matched x with the number of their z; dropped x as thinner bars. */
function segments(context, at, { runs_x, segments: found }, palette) {
  const band = at.bands.segments;
  context.fillStyle = palette.dropped;
  for (const [start, stop] of runs_x)
    fillAtLeast(context, toX(at, start), band.y + 6, toX(at, stop) - toX(at, start), band.height - 12);
  for (let k = 0; k < found.length; k += 3) block(context, at, found[k], found[k + 1], found[k + 2], band, palette, "matched");
}

/** The posterior: the probability of each match, and of dropping each x and z. */
function chances(context, at, { posterior: p, heat }, palette) {
  const { bands: { posterior, drop }, left, inner, K, N } = at, beside = left + inner + 8;
  context.fillStyle = palette.panel;
  context.fillRect(...area(at, "posterior"));
  context.fillRect(...area(at, "drop"));
  if (p && heat) {
    blit(context, heat, area(at, "posterior"), true);
    context.fillStyle = palette.dropped;
    context.beginPath();
    context.moveTo(left, drop.y + drop.height);
    for (let j = 0; j < N; j++)
      for (const end of [j, j + 1]) context.lineTo(toX(at, end), drop.y + drop.height * (1 - p.drop_x[j]));
    context.lineTo(left + inner, drop.y + drop.height);
    context.fill();
    for (let i = 0; at.beside && i < K; i++)
      if (p.drop_z[i] > 0.004) fillAtLeast(context, beside, toY(at, i, "posterior"), at.beside * p.drop_z[i], posterior.height / K);
  }
  context.strokeStyle = palette.line;
  if (at.beside) context.strokeRect(beside - 0.5, posterior.y - 0.5, at.beside + 1, posterior.height + 1);
}

/** The cross hairs at a cell. */
export function paintCursor(context, at, cell, palette) {
  context.clearRect(0, 0, at.width, at.height);
  if (!cell) return;
  const { bands, left, inner, K, N } = at;
  const x = left + (cell.j + 0.5) / N * inner, w = Math.max(inner / N, 4);
  const last = bands.drop ?? bands.matrix;
  for (const [color, wide] of [[palette.ground, 3], [palette.cursor, 1]]) {
    context.strokeStyle = color;
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

/** The cell under a point; i is null outside the matrices, and j is null outside the columns. */
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
  for (const [counts, color, filled] of [[all, palette.soft, true], [best, palette.matched, false]]) {
    const top = Math.max(1, ...counts), w = width / counts.length;
    context.fillStyle = color;
    context.globalAlpha = filled ? 0.45 : 0.85;
    counts.forEach((n, k) => {
      const h = n ? Math.max(1, n / top * (floor - 4)) : 0;
      filled ? context.fillRect(k * w, floor - h, w - 0.5, h) : context.fillRect(k * w + w * 0.25, floor - h, w * 0.5, h);
    });
  }
  context.globalAlpha = 1;
  context.fillStyle = palette.line;
  context.fillRect(0, floor, width, 1);
  context.fillStyle = palette.dropped;
  for (const price of prices) {
    const x = (price - low) / (high - low || 1) * width;
    context.fillRect(Math.max(0, Math.min(width - 2.5, x - 1.25)), 0, 2.5, height);
  }
}

/** A line from step to step, in the order in which they were done; none if Z is a plain list. */
function walk(context, at, visits, palette) {
  if (!visits) return;
  for (const [color, wide] of [[palette.halo, 4], [palette.matched, 1.5]]) {
    context.strokeStyle = color;
    context.lineWidth = wide;
    context.beginPath();
    for (let k = 0; k < visits.length; k += 3) {
      const y = toY(at, visits[k] + 0.5);
      k ? context.lineTo(toX(at, visits[k + 1] + 0.5), y) : context.moveTo(toX(at, visits[1] + 0.5), y);
      context.lineTo(toX(at, visits[k + 2] - 0.5), y);
    }
    context.stroke();
  }
}

function outside(context, { settings }, at, palette) {
  const { kind, value } = settings.window, { K, N, bands, left, inner } = at;
  if (kind === "none" || K === 1) return;
  const width = kind === "share" ? value * N : value, h = bands.matrix.height / K;
  context.fillStyle = palette.outside;
  for (let i = 0; i < K; i++) {
    const center = i * (N - 1) / (K - 1);
    const start = Math.max(0, Math.ceil(center - width - 1e-9)), stop = Math.min(N, Math.floor(center + width + 1e-9) + 1);
    context.fillRect(left, toY(at, i), toX(at, start) - left, h);
    context.fillRect(toX(at, stop), toY(at, i), left + inner - toX(at, stop), h);
  }
}

function blit(context, picture, [x, y, w, h], thin = false) {
  if (!picture) return;
  context.imageSmoothingEnabled = picture.width > w * devicePixelRatio || picture.height > h * devicePixelRatio;
  context.imageSmoothingQuality = "medium";
  context.drawImage(picture, x, y, w, h);
  if (context.imageSmoothingEnabled && thin) context.drawImage(picture, x, y, w, h); // twice, because thin lines fade when scaled
}

/** A segment with its number, and a gap before the next one. */
function block(context, at, label, start, stop, band, palette, meaning) {
  const x = toX(at, start), end = toX(at, stop);
  context.fillStyle = palette[meaning];
  fillAtLeast(context, x, band.y, end - x - (end - x > 6 ? 1.5 : 0), band.height);
  const text = String(label + at.first);
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  if (context.measureText(text).width + 4 > end - x) return;
  context.fillStyle = palette[`on-${meaning}`];
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
