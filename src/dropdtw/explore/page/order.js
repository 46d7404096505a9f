// Draw the order of the steps: boxes in layers from left to right, and arrows. Steps that were done are numbered.

const SPACE = "http://www.w3.org/2000/svg", HIGH = 40, GAP = 40, BELOW = 18, LETTERS = 19;
const made = (name, attributes = {}, ...inside) => {
  const found = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  found.append(...inside);
  return found;
};

/** Break a text into at most two lines. */
function lines(text) {
  const found = [""];
  for (const word of text.split(/\s+/)) {
    const last = found.at(-1);
    if (last && last.length + word.length >= LETTERS) found.push(word);
    else found[found.length - 1] = last ? `${last} ${word}` : word;
  }
  const cut = (line, more) => line.length > LETTERS || more ? `${line.slice(0, LETTERS - 1)}…` : line;
  return found.slice(0, 2).map((line, k) => cut(line, k === 1 && found.length > 2));
}

/** Draw boxes and arrows. say: the words of the page. A click on a box calls `chosen` with its step. */
export function drawOrder(order, say, chosen) {
  const box = document.getElementById("boxes");
  document.getElementById("order").hidden = false;
  if (!order.nodes.length) {
    box.hidden = document.getElementById("order-key").hidden = true;
    return;
  }
  const full = order.names.length ? 132 : 46, [layers, rows] = order.size;
  // Layers that contain only dots are narrow.
  const wide = Array(layers).fill(10), left = [];
  for (const [number, layer] of order.nodes) if (number >= 0) wide[layer] = full;
  wide.reduce((at, width, layer) => (left[layer] = at) + width + GAP, 16);
  const back = order.edges.filter(([, , kind]) => kind === "repeat" || kind === "jump");
  // Arrows that lead back run above the boxes; longer ones run higher.
  const rise = ([a, b]) => 16 + 9 * Math.min(8, Math.abs(order.nodes[a][1] - order.nodes[b][1]));
  const top = back.length ? Math.max(...back.map(rise)) + 16 : 14;
  const width = left.at(-1) + wide.at(-1) + 16, height = top + rows * (HIGH + BELOW) - BELOW + 16;
  const x = (layer) => left[layer], y = (row) => top + (row + (rows - 1) / 2) * (HIGH + BELOW) + HIGH / 2;
  const isDot = (n) => order.nodes[n][0] < 0;
  const middle = (n) => x(order.nodes[n][1]) + wide[order.nodes[n][1]] / 2, half = (n) => (isDot(n) ? 5 : full / 2);
  const leaves = (n) => middle(n) + half(n), enters = (n) => middle(n) - half(n);
  const above = (n) => y(order.nodes[n][2]) - (isDot(n) ? 5 : HIGH / 2);
  const picture = made("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  picture.append(made("title", {}, "The order of the steps"));
  const tip = made("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto-start-reverse" });
  tip.append(made("path", { d: "M0 0L8 4L0 8z", class: "tip" }));
  picture.append(made("defs", {}, tip));
  for (const edge of order.edges) {
    const [a, b, kind, cost, bends] = edge, line = made("path", { class: kind, "marker-end": "url(#tip)" });
    let label;
    if (kind === "repeat" || kind === "jump") {
      const up = Math.min(above(a), above(b)) - rise(edge), dx = a === b ? 12 : 0;
      line.setAttribute("d", `M${middle(a) + dx} ${above(a)}C${middle(a) + dx} ${up},${middle(b) - dx} ${up},${middle(b) - dx} ${above(b)}`);
      label = [(middle(a) + middle(b)) / 2, up + rise(edge) / 4 - 4];
    } else {
      const points = [[leaves(a), y(order.nodes[a][2])]];
      for (const [layer, row] of bends) points.push([x(layer), y(row)], [x(layer) + wide[layer], y(row)]);
      points.push([enters(b) - 1, y(order.nodes[b][2])]);
      let d = `M${points[0]}`;
      for (let k = 1; k < points.length; k++) {
        const between = (points[k - 1][0] + points[k][0]) / 2;
        d += k % 2 ? `C${between} ${points[k - 1][1]},${between} ${points[k][1]},${points[k]}` : `L${points[k]}`;
      }
      line.setAttribute("d", d);
      label = [(points[0][0] + points[1][0]) / 2, (points[0][1] + points[1][1]) / 2 - 5];
    }
    line.dataset.ends = `${order.nodes[a][0]} ${order.nodes[b][0]}`;
    picture.append(line);
    if (cost) picture.append(made("text", { x: label[0], y: label[1], class: "cost", "text-anchor": "middle" }, String(cost)));
  }
  for (const [number, layer, row] of order.nodes) {
    if (number < 0) {
      picture.append(made("circle", { cx: x(layer) + wide[layer] / 2, cy: y(row), r: 4, class: "dot" }));
      continue;
    }
    const name = order.names[number], group = made("g", { class: "box", transform: `translate(${x(layer)} ${y(row) - HIGH / 2})` });
    const about = `step ${number + say.first}${name ? `: ${name}` : ""}${order.optional.includes(number) ? " (optional)" : ""}`;
    group.append(made("title", {}, about), made("rect", { width: full, height: HIGH, rx: 5 }));
    const shown = name ? lines(name) : [String(number)];
    shown.forEach((line, k) => group.append(made("text", { x: full / 2, y: HIGH / 2 + 4 + 14 * (k - (shown.length - 1) / 2), "text-anchor": "middle" }, line)));
    group.dataset.step = number;
    group.classList.toggle("optional", order.optional.includes(number));
    group.addEventListener("click", () => chosen(number));
    picture.append(group);
  }
  box.replaceChildren(picture);
}

/** Number the boxes in the order in which an alignment visits them, and list them in the caption. */
export function showWalk(order, found) {
  const done = new Map(), { visits } = found, walk = new Set(found.walk), said = [];
  for (let k = 0; k < visits.length; k += 3) {
    done.set(visits[k], [...done.get(visits[k]) ?? [], k / 3 + 1]);
    said.push(order.names[visits[k]] ?? visits[k]);
  }
  const more = said.length > 40 ? ` … and ${said.length - 40} more` : "";
  document.getElementById("done").textContent = said.length ? `Done: ${said.slice(0, 40).join(" → ")}${more}` : "No step was done.";
  for (const box of document.querySelectorAll("#boxes g.box")) {
    const step = Number(box.dataset.step), numbers = done.get(step);
    box.classList.toggle("done", Boolean(numbers));
    box.classList.toggle("dropped", !numbers && walk.has(step));
    box.classList.toggle("passed", !walk.has(step));
    box.querySelector(".badges")?.remove();
    if (!numbers) continue;
    const text = numbers.length > 4 ? `${numbers.slice(0, 3)},…` : String(numbers), wide = Math.max(18, 8 + 6.2 * text.length);
    const badge = made("rect", { x: -7, y: -8, width: wide, height: 17, rx: 8, class: "badge" });
    box.append(made("g", { class: "badges" }, badge, made("text", { x: wide / 2 - 7, y: 4, "text-anchor": "middle" }, text)));
  }
  for (const line of document.querySelectorAll("#boxes path[data-ends]"))
    line.classList.toggle("passed", line.dataset.ends.split(" ").some((step) => Number(step) >= 0 && !walk.has(Number(step))));
}
