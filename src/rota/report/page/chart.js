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
  const beside = besideOf(block);
  const lines = block.lines.filter((line) => !hidden.has(line.name)).map((line) => path(block, line, plot, beside(line)));
  const dots = block.dots ? block.lines.filter((line) => !line.faint && !hidden.has(line.name)).flatMap((line) => dotsOf(line, plot, beside(line))) : [];
  svg.replaceChildren(...axes(block, plot), ...lines, ...dots, shape("g", { class: "cursor" }));
}

// Points at the same number are drawn beside each other, so that no interval hides another.
function besideOf(block) {
  if (!block.dots || block.x.kind === "text") return () => 0;
  const names = block.lines.filter((line) => !line.faint).map((line) => line.name);
  return (line) => 3 * (names.indexOf(line.name) - (names.length - 1) / 2);
}

function dotsOf(line, { atX, atY }, beside) {
  return line.x.flatMap((x, number) => {
    if (x === null || line.y[number] === null) return [];
    const dot = shape("circle", { cx: atX(x) + beside, cy: atY(line.y[number]), r: 3.5 });
    dot.style.fill = themed(line.colour);
    return [dot];
  });
}

function plotOf(block, width, height, hidden) {
  const drawn = block.lines.filter((line) => !hidden.has(line.name));
  const lines = drawn.length ? drawn : block.lines;
  const [xs, ys] = ["x", "y"].map((name) => lines.flatMap((line) => line[name]).filter((each) => each !== null));
  const x = [Math.min(...xs), Math.max(...xs)];
  const strong = lines.flatMap((line) => line.faint ? [] : line.y).filter((each) => each !== null);
  const y = limitsOf(block.y, ys, block.dots ? withIntervals(ys, strong) : strong);
  if (block.x.kind === "text") [x[0], x[1]] = [-0.5, block.x.names.length - 0.5];
  else if (x[1] <= x[0]) x[1] = x[0] + 1;
  if (!block.x.log && !block.dots && x[0] > 0 && x[0] < 0.25 * x[1]) x[0] = 0;
  const box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  const scale = (low, high, from, to, log) => log
    ? (value) => from + (to - from) * (Math.log(value / low) / Math.log(high / low))
    : (value) => from + (to - from) * (value - low) / (high - low);
  if (block.x.log) x[0] = Math.max(x[0], x[1] / 1e7);
  if (block.dots && block.x.kind !== "text") widen(block, x);
  return { box, x, y, atX: scale(...x, box.left, box.right, block.x.log), atY: scale(...y, box.bottom, box.top) };
}

// Some room beside the first and the last point.
function widen(block, x) {
  const factor = (x[1] / x[0]) ** 0.05;
  const room = 0.05 * (x[1] - x[0]);
  [x[0], x[1]] = block.x.log ? [x[0] / factor, x[1] * factor] : [x[0] - room, x[1] + room];
}

// Intervals belong into the picture, but not below 0 if no mean is there.
function withIntervals(all, means) {
  const floor = means.some((each) => each < 0) ? -Infinity : 0;
  return all.map((each) => Math.max(floor, each));
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

function path(block, line, { atX, atY, box }, beside) {
  let text = "";
  let pen = false;
  for (let i = 0; i < line.x.length; i++) {
    if (line.x[i] === null || line.y[i] === null) {
      pen = false;
      continue;
    }
    const x = Math.max(box.left, atX(line.x[i]) + beside).toFixed(1);
    const y = Math.min(box.bottom, Math.max(box.top, atY(line.y[i]))).toFixed(1);
    text += !pen ? `M${x} ${y}` : block.steps ? `H${x}V${y}` : `L${x} ${y}`;
    pen = true;
  }
  const made = shape("path", { d: text, class: !line.faint ? "line" : block.dots ? "interval" : "faint", "stroke-dasharray": DASHES[line.dash % 5] });
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
    const pointed = block.x.log ? plot.x[0] * (plot.x[1] / plot.x[0]) ** share : plot.x[0] + share * (plot.x[1] - plot.x[0]);
    const lines = block.lines.filter((line) => !line.faint && !hidden.has(line.name));
    const at = block.dots ? nearest(block, lines, plot, x, pointed) : pointed;
    svg.querySelector(".cursor").replaceChildren(shape("line", { x1: plot.atX(at), x2: plot.atX(at), y1: plot.box.top, y2: plot.box.bottom }));
    const rows = lines.map((line) => [line, block.dots ? dotAt(line, at) : valueAt(line, at)]).filter(([, value]) => value !== null)
      .sort(([, a], [, b]) => b - a)
      .map(([line, value]) => element("tr", {}, element("th", {}, chip(line.colour), line.name), element("td", {}, shown(value, block.y.kind))));
    showTip(clientX, clientY, element("b", {}, block.x.kind === "text" ? block.x.names[at] : shown(at, block.x.kind)), element("table", {}, ...rows));
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

// Where something was measured, next to the pointer: a number, or the number of a category.
function nearest(block, lines, plot, x, pointed) {
  if (block.x.kind === "text") return Math.min(block.x.names.length - 1, Math.max(0, Math.round(pointed)));
  const places = lines.flatMap((line) => line.x);
  return places.reduce((best, each) => Math.abs(plot.atX(each) - x) < Math.abs(plot.atX(best) - x) ? each : best, places[0] ?? pointed);
}

// Points of a category are a little beside it.
function dotAt(line, at) {
  const number = line.x.findIndex((x) => x !== null && Math.abs(x - at) < (line.x.includes(null) ? 0.5 : 1e-9));
  return number < 0 ? null : line.y[number];
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
