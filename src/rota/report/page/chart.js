// Lines over an axis, as SVG that is drawn anew when there is more or less room.

const DASHES = ["", "7 3", "2 2", "9 3 2 3", "4 2 1 2"];
const MARGIN = { top: 28, right: 16, bottom: 40, left: 52 };

function chartBlock(block) {
  const svg = shape("svg", { role: "img", "aria-label": block.title, tabindex: "0" });
  const hidden = new Set();
  const frame = element("div", { className: "chart" }, svg);
  const redraw = () => drawChart(block, svg, frame.clientWidth, hidden);
  new ResizeObserver(redraw).observe(frame);
  follow(block, svg, hidden);
  return element("div", {}, chartLegend(block, hidden, redraw), frame);
}

function chartLegend(block, hidden, redraw) {
  const named = block.lines.filter((line) => !line.faint);
  const items = named.map((line) => {
    const button = element("button", { type: "button", "aria-pressed": "true" }, stroke(line), line.name);
    button.addEventListener("click", () => {
      if (!hidden.delete(line.name)) hidden.add(line.name);
      button.setAttribute("aria-pressed", String(!hidden.has(line.name)));
      redraw();
    });
    return button;
  });
  return element("div", { className: "legend", hidden: named.length < 2 && !named[0]?.name }, ...items);
}

function stroke(line) {
  const sample = shape("line", { x1: 0, x2: 22, y1: 5, y2: 5, "stroke-width": 3, "stroke-dasharray": DASHES[line.dash % 5] });
  sample.style.stroke = themed(line.colour);
  return shape("svg", { width: 22, height: 10, "aria-hidden": "true" }, sample);
}

function drawChart(block, svg, width, hidden) {
  if (width < 50) return;
  const height = Math.round(Math.max(210, Math.min(340, width * 0.42)));
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  const plot = plotOf(block, width, height, hidden);
  svg.plot = plot;
  const lines = block.lines.filter((line) => !hidden.has(line.name)).map((line) => path(block, line, plot));
  svg.replaceChildren(...axes(block, plot), ...lines, shape("g", { class: "cursor" }));
}

function plotOf(block, width, height, hidden) {
  const drawn = block.lines.filter((line) => !hidden.has(line.name));
  const lines = drawn.length ? drawn : block.lines;
  const [xs, ys] = ["x", "y"].map((name) => lines.flatMap((line) => line[name]).filter((each) => each !== null));
  const x = [Math.min(...xs), Math.max(...xs)];
  const y = limitsOf(block.y, ys, lines.flatMap((line) => line.faint ? [] : line.y).filter((each) => each !== null));
  if (x[1] <= x[0]) x[1] = x[0] + 1;
  if (!block.x.log && x[0] > 0 && x[0] < 0.25 * x[1]) x[0] = 0;
  const box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  const scale = (low, high, from, to, log) => log
    ? (value) => from + (to - from) * (Math.log(value / low) / Math.log(high / low))
    : (value) => from + (to - from) * (value - low) / (high - low);
  if (block.x.log) x[0] = Math.max(x[0], x[1] / 1e7);
  return { box, x, y, atX: scale(...x, box.left, box.right, block.x.log), atY: scale(...y, box.bottom, box.top) };
}

// Counts and shares start at 0 unless all is far from it; what is drawn faintly may leave the picture.
function limitsOf(axis, all, strong) {
  const values = strong.length ? strong : all;
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (high <= low) high = low + (Math.abs(low) || 1) * 0.1;
  if (low >= 0 && low < 0.5 * high) low = 0;
  else low -= 0.06 * (high - low);
  high = axis.kind === "share" && high > 0.9 && high <= 1 ? 1 : high + 0.05 * (high - low);
  return [low, high];
}

function axes(block, plot) {
  const { box, atX, atY } = plot;
  const text = (label, x, y, anchor) => shape("text", { x, y, "text-anchor": anchor }, label);
  const across = ticksOf(block.x, ...plot.x, Math.max(2, Math.floor((box.right - box.left) / 90)));
  const up = ticksOf(block.y, ...plot.y, 5);
  const grid = up.map(([at]) => shape("line", { class: "grid", x1: box.left, x2: box.right, y1: atY(at), y2: atY(at) }));
  const marks = across.map(([at]) => shape("line", { class: "axis", x1: atX(at), x2: atX(at), y1: box.bottom, y2: box.bottom + 4 }));
  return [
    ...grid, ...marks,
    shape("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    ...up.map(([at, label]) => text(label, box.left - 6, atY(at) + 4, "end")),
    ...across.map(([at, label]) => text(label, atX(at), box.bottom + 17, "middle")),
    text(block.y.label, 4, 14, "start"),
    text(block.x.label, (box.left + box.right) / 2, box.bottom + 35, "middle"),
  ];
}

function path(block, line, { atX, atY, box }) {
  let text = "";
  let pen = false;
  for (let i = 0; i < line.x.length; i++) {
    if (line.x[i] === null || line.y[i] === null) {
      pen = false;
      continue;
    }
    const x = Math.max(box.left, atX(line.x[i])).toFixed(1);
    const y = Math.min(box.bottom, Math.max(box.top, atY(line.y[i]))).toFixed(1);
    text += !pen ? `M${x} ${y}` : block.steps ? `H${x}V${y}` : `L${x} ${y}`;
    pen = true;
  }
  const made = shape("path", { d: text, class: line.faint ? "faint" : "line", "stroke-dasharray": DASHES[line.dash % 5] });
  made.style.stroke = themed(line.colour);
  return made;
}

// What the lines say where the pointer is, or where arrow keys went.
function follow(block, svg, hidden) {
  let share = 0.5;
  const look = (clientX, clientY) => {
    const plot = svg.plot;
    if (!plot) return;
    const x = Math.min(plot.box.right, Math.max(plot.box.left, clientX - svg.getBoundingClientRect().left));
    share = (x - plot.box.left) / (plot.box.right - plot.box.left);
    const at = block.x.log ? plot.x[0] * (plot.x[1] / plot.x[0]) ** share : plot.x[0] + share * (plot.x[1] - plot.x[0]);
    const lines = block.lines.filter((line) => !line.faint && !hidden.has(line.name));
    svg.querySelector(".cursor").replaceChildren(shape("line", { x1: x, x2: x, y1: plot.box.top, y2: plot.box.bottom }));
    const rows = lines.map((line) => [line, valueAt(line, at)]).filter(([, value]) => value !== null)
      .sort(([, a], [, b]) => b - a)
      .map(([line, value]) => element("tr", {}, element("th", {}, chip(line.colour), line.name), element("td", {}, shown(value, block.y.kind))));
    showTip(clientX, clientY, element("b", {}, shown(at, block.x.kind)), element("table", {}, ...rows));
  };
  const leave = () => {
    svg.querySelector(".cursor")?.replaceChildren();
    hideTip();
  };
  svg.addEventListener("pointermove", (event) => look(event.clientX, event.clientY));
  svg.addEventListener("pointerdown", (event) => look(event.clientX, event.clientY));
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
    if (!step || !svg.plot) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    const { left, right } = svg.plot.box;
    look(box.left + left + Math.min(1, Math.max(0, share + step)) * (right - left), box.top + box.height / 2);
  });
}

// The last value up to somewhere; null before a line begins.
function valueAt(line, at) {
  let [low, high] = [0, line.x.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((line.x[middle] ?? Infinity) <= at) low = middle + 1;
    else high = middle;
  }
  return low ? line.y[low - 1] : null;
}
