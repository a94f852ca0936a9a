// What was on which slot when: a canvas to zoom into, to pan and to point at.

const TALLEST_ROW = 26;
const LABELS = 500;
const LABEL_WIDTH = 26;
const HEAD = 22;

function timelineBlock(block) {
  block.rowNames = block.nodes.flatMap(([name, slots]) => Array.from({ length: slots || 1 }, (_, slot) => ({ name, slot: slots ? slot : -1 })));
  block.firstRow = offsets(block.nodes.map(([, slots]) => slots || 1));
  const chart = new Timeline(block);
  return chart.root;
}

class Timeline {
  constructor(block) {
    this.block = block;
    this.canvas = element("canvas", { tabIndex: 0, role: "img" });
    this.pen = this.canvas.getContext("2d", { willReadFrequently: true }); // pixels are ours: keep them in memory
    this.note = element("output", { className: "range" });
    this.select = element("select", { "aria-label": "Which run" }, ...block.runs.map(({ name }, number) => element("option", { value: number }, name)));
    this.taller = element("input", { type: "range", min: 0, max: 100, value: 0, "aria-label": "Height of rows" });
    this.root = this.assemble();
    this.scenes = new Map();
    this.held = new Map();
    this.focused = -1;
    this.listen();
  }

  assemble() {
    const button = (label, hint, call) => {
      const made = element("button", { type: "button", title: hint, "aria-label": hint }, label);
      made.addEventListener("click", call);
      return made;
    };
    const tools = element("div", { className: "tools" },
      element("label", { className: "run" }, this.select),
      button("+", "Zoom in", () => this.zoom(0.5)),
      button("−", "Zoom out", () => this.zoom(2)),
      button("All", "Show everything", () => this.reset()),
      element("label", { className: "taller" }, "row height ", this.taller),
      this.note);
    const { legend: names, palette } = this.block;
    const shades = palette.filter((_, at) => at % 6 === 1).map(chip);
    const painted = this.block.measured ? ["less accurate ", ...shades, "more"] : ["a colour per trial"];
    const legend = this.block.of === "jobs" ? names.map((name, number) => element("span", {}, chip(palette[number]), name))
      : [element("span", {}, ...painted),
        element("span", {}, chip(MOVING), "dispatch and transfer"), element("span", {}, chip(AWAY), "striped: away, or lost")];
    const help = "Wheel or pinch to zoom, drag to pan, double click to see all. Keys: arrows, + and −, 0; with Shift, arrows go from bar to bar.";
    return element("div", { className: "timeline" }, tools, element("div", { className: "legend" }, ...legend),
      element("div", { className: "canvas" }, this.canvas), element("p", { className: "help" }, help));
  }

  listen() {
    new ResizeObserver(() => this.layout()).observe(this.canvas.parentElement);
    new IntersectionObserver((entries, observer) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      this.select.value = this.block.first;
      this.choose(this.block.first);
    }, { rootMargin: "600px" }).observe(this.root);
    document.addEventListener("themechange", () => this.draw());
    document.addEventListener("paperchange", () => this.scene && this.width && this.paint()); // a browser prints at once
    this.select.addEventListener("change", () => this.choose(Number(this.select.value)));
    this.taller.addEventListener("input", () => this.layout());
    const on = (name, call, options) => this.canvas.addEventListener(name, call.bind(this), options);
    on("wheel", this.wheel, { passive: false });
    on("pointerdown", this.press);
    on("pointermove", this.move);
    on("pointerup", this.release);
    on("pointercancel", this.release);
    on("pointerleave", this.leave);
    on("dblclick", this.reset);
    on("keydown", this.key);
    on("blur", this.leave);
  }

  // Show a run; what is in sight stays so.
  async choose(number) {
    const [block, run] = [this.block, this.block.runs[number]];
    this.chosen = number;
    this.items ??= Promise.all([unpack(block.items), unpackNames(block.items.ids).then((names) => { block.names = names; })]);
    if (!this.scenes.has(number)) this.scenes.set(number, unpack(run).then((columns) => new Scene(run, columns)));
    const [[jobs], scene] = await Promise.all([this.items, this.scenes.get(number)]);
    if (this.chosen !== number) return; // another one was chosen since
    const whole = !this.scene || this.isWhole();
    const ratio = whole ? 1 : this.scene.tick / scene.tick;
    this.view = whole ? { from: 0, to: scene.end, top: 0 } : { ...this.view, from: this.view.from * ratio, to: this.view.to * ratio };
    Object.assign(this, { jobs, scene, regions: regionsOf(block, scene), focused: -1 });
    this.canvas.setAttribute("aria-label", `${block.title}: ${run.name}, ${counted(scene.bars, "bar")}`);
    this.root.dataset.run = run.name;
    this.layout();
  }

  isWhole() {
    return this.view.from === 0 && this.view.to === this.scene.end;
  }

  // ---- how large things are

  layout() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const width = this.canvas.parentElement.clientWidth;
    const rows = this.block.rowNames.length;
    const height = HEAD + Math.round(Math.min(Math.max(rows * 22, 66), Math.max(260, Math.min(560, innerHeight * 0.62))));
    this.gutter = Math.min(Math.round(width * 0.3), this.labelWidth());
    const fit = (height - HEAD) / rows;
    const share = Number(this.taller.value) / 100;
    this.rowHeight = fit >= TALLEST_ROW ? fit : fit * (TALLEST_ROW / fit) ** share;
    this.taller.parentElement.hidden = fit >= TALLEST_ROW * 0.8;
    Object.assign(this, { width, height, ratio });
    for (const [name, size] of [["width", width], ["height", height]]) {
      if (this.canvas[name] !== Math.round(size * ratio)) this.canvas[name] = Math.round(size * ratio);
      this.canvas.style[name] = `${size}px`;
    }
    this.keep();
  }

  labelWidth() {
    const { pen } = this;
    pen.font = font(11);
    const names = this.block.nodes.map(([name, slots]) => pen.measureText(slots > 1 ? `${name} 00` : name).width);
    return Math.ceil(names.reduce((most, each) => Math.max(most, each), 20)) + 14;
  }

  // Keeps the view within what there is, and draws it.
  keep() {
    const { scene, view } = this;
    if (!scene) return;
    const length = Math.min(Math.max(view.to - view.from, 20), scene.end);
    view.from = Math.min(Math.max(view.from, 0), scene.end - length);
    view.to = view.from + length;
    view.top = Math.min(Math.max(view.top, 0), Math.max(0, scene.rows - (this.height - HEAD) / this.rowHeight));
    this.draw();
  }

  draw() {
    if (this.waiting || !this.scene || !this.width) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  paint() {
    const { canvas, pen, scene, view, ratio, block } = this;
    const began = performance.now();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const [left, top] = [Math.round(this.gutter * ratio), Math.round(HEAD * ratio)];
    const picture = this.pictureOf(pen, canvas.width - left, canvas.height - top);
    const paint = paintOf(block.palette);
    const inPixels = { ...view, rowHeight: this.rowHeight * ratio };
    this.drawn = paintBars(picture, scene, inPixels, paint, (i) => this.kindOf(i));
    paintAway(picture, scene, inPixels, paint, this.regions);
    pen.putImageData(picture, left, top);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    writeOver(this, pen);
    const whole = duration(scene.end * scene.tick);
    this.note.textContent = this.isWhole() ? `all ${whole}, ${counted(scene.bars, "bar")}`
      : `${stretch(view.from * scene.tick, view.to * scene.tick)} of ${whole}`;
    this.root.dataset.drawn = this.drawn;
    this.root.dataset.ms = (performance.now() - began).toFixed(1);
  }

  // Which colour of the palette a bar has.
  kindOf(bar) {
    return this.block.of === "jobs" ? this.jobs.paint[this.scene.item[bar]] : this.scene.paint[bar];
  }

  pictureOf(pen, width, height) {
    if (this.picture?.width !== width || this.picture?.height !== height) this.picture = pen.createImageData(width, height);
    return this.picture;
  }

  // ---- where things are

  nameOf(bar) {
    return this.block.of === "jobs" ? this.block.names[this.scene.item[bar]] : String(this.scene.item[bar]);
  }

  visit(call) {
    const { view } = this;
    const last = Math.floor(view.top + (this.height - HEAD) / this.rowHeight);
    this.scene.each(Math.floor(view.top), last, view.from, view.to, call);
  }

  boxOf(i, row) {
    const { scene, view } = this;
    const yOf = (at) => HEAD + (at - view.top) * this.rowHeight;
    const first = row + scene.place[i] / scene.of[i];
    const rows = scene.of[i] > 1 ? 1 / scene.of[i] : scene.height[i];
    return { left: this.xOf(scene.from[i]), right: this.xOf(scene.to[i]), top: yOf(first), bottom: yOf(first + rows) };
  }

  xOf(tick) {
    return this.gutter + (tick - this.view.from) / (this.view.to - this.view.from) * (this.width - this.gutter);
  }

  tickAt(x) {
    return this.view.from + (x - this.gutter) / (this.width - this.gutter) * (this.view.to - this.view.from);
  }

  // ---- what people do

  zoom(factor, x = (this.gutter + this.width) / 2) {
    if (!this.scene) return;
    const fixed = this.tickAt(x);
    this.view.from = fixed - (fixed - this.view.from) * factor;
    this.view.to = fixed + (this.view.to - fixed) * factor;
    this.keep();
  }

  pan(x, y) {
    if (!this.scene) return;
    const ticks = x / (this.width - this.gutter) * (this.view.to - this.view.from);
    const length = this.view.to - this.view.from;
    this.view.from = Math.min(Math.max(this.view.from - ticks, 0), this.scene.end - length);
    this.view.to = this.view.from + length;
    this.view.top -= y / this.rowHeight;
    this.keep();
  }

  reset() {
    if (!this.scene) return;
    this.view = { from: 0, to: this.scene.end, top: 0 };
    this.taller.value = 0;
    this.layout();
  }

  // The page scrolls where there is nothing left to zoom out of.
  wheel(event) {
    if (!this.scene) return;
    if (this.isWhole() && event.deltaY > 0 && !event.shiftKey) return;
    event.preventDefault();
    const size = event.deltaMode === 1 ? 30 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(-size * (event.deltaX || event.deltaY), 0);
    else this.zoom(Math.exp(Math.min(Math.max(size * event.deltaY, -200), 200) * 0.003), this.placeOf(event).x);
    this.point(event);
  }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.held.set(event.pointerId, { ...this.placeOf(event), moved: 0 });
  }

  move(event) {
    const held = this.held.get(event.pointerId);
    if (!held) return this.point(event);
    const place = this.placeOf(event);
    const [x, y] = [place.x - held.x, place.y - held.y];
    const others = [...this.held].filter(([id]) => id !== event.pointerId).map(([, each]) => each);
    if (others.length) {
      const [was, is] = [Math.abs(held.x - others[0].x), Math.abs(place.x - others[0].x)];
      this.zoom(Math.max(was, 10) / Math.max(is, 10), (place.x + others[0].x) / 2);
      this.pan(x / 2, y / 2);
    } else this.pan(x, y);
    this.held.set(event.pointerId, { ...place, moved: held.moved + Math.abs(x) + Math.abs(y) });
    if (held.moved > 4) hideTip();
    return undefined;
  }

  release(event) {
    const held = this.held.get(event.pointerId);
    this.held.delete(event.pointerId);
    if (held && held.moved < 5) this.point(event);
  }

  // A finger always leaves when it is lifted; what it pointed at stays.
  leave(event) {
    if (this.held.size || event?.pointerType === "touch") return;
    this.focused = -1;
    hideTip();
    this.draw();
  }

  placeOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  // Say what is under the pointer.
  point(event) {
    if (!this.scene) return;
    const { x, y } = this.placeOf(event);
    const place = this.view.top + (y - HEAD) / this.rowHeight;
    const slack = 2 * (this.view.to - this.view.from) / (this.width - this.gutter);
    const inside = x >= this.gutter && y >= HEAD;
    const bar = inside ? this.scene.at(place, this.tickAt(x), slack) : -1;
    this.focus(bar, event.clientX, event.clientY);
    if (bar < 0 && inside) this.pointAtRegion(place, this.tickAt(x), event);
  }

  pointAtRegion(place, tick, event) {
    const region = this.regions.find(({ from, to, row, rows }) => tick >= from && tick < to && place >= row && place < row + rows);
    if (!region) return;
    const when = stretch(region.from * this.scene.tick, region.to * this.scene.tick);
    showTip(event.clientX, event.clientY, element("b", {}, region.what), element("div", {}, when));
  }

  focus(bar, x, y) {
    const changed = bar !== this.focused;
    this.focused = bar;
    if (bar < 0) hideTip();
    else showTip(x, y, ...tellElements((this.block.of === "jobs" ? tellJob : tellTrial)(this.block, this.jobs, this.scene, bar)));
    if (changed) this.draw();
  }

  key(event) {
    const step = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!this.scene || event.ctrlKey || event.metaKey || event.altKey) return;
    if (step && event.shiftKey) this.step(-step[0], -step[1]);
    else if (step) this.pan(step[0] * this.width / 8, step[1] * this.rowHeight * 3);
    else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0" || event.key === "Home") this.reset();
    else if (event.key === "Escape") this.leave();
    else return;
    event.preventDefault();
  }

  // To the next bar of a row, or to the same time in the next row that has any.
  step(along, down) {
    const { scene, view } = this;
    if (this.focused < 0) {
      const first = scene.at(view.top + 0.01, view.from, view.to - view.from);
      if (first < 0 && !scene.bars) return;
      this.show(Math.max(first, 0));
      return;
    }
    let row = scene.rowOf(this.focused);
    if (along) return void this.show(Math.min(Math.max(this.focused + along, scene.row[row]), scene.row[row + 1] - 1));
    const moment = scene.from[this.focused];
    for (row += down; row >= 0 && row < scene.rows; row += down) {
      if (scene.row[row] === scene.row[row + 1]) continue;
      this.show(Math.min(scene.firstIn(row, moment), scene.row[row + 1] - 1));
      return;
    }
  }

  // Bring a bar into sight, and say what it is.
  show(bar) {
    const { scene, view } = this;
    const row = scene.rowOf(bar);
    const middle = (scene.from[bar] + scene.to[bar]) / 2;
    const half = (view.to - view.from) / 2;
    if (scene.to[bar] < view.from || scene.from[bar] > view.to) Object.assign(view, { from: middle - half, to: middle + half });
    const visible = (this.height - HEAD) / this.rowHeight;
    if (row < view.top || row >= view.top + visible) view.top = row - visible / 2;
    this.keep();
    const box = this.canvas.getBoundingClientRect();
    const { left, right, bottom } = this.boxOf(bar, row);
    const x = Math.min(Math.max((left + right) / 2, this.gutter), this.width);
    this.focus(bar, box.left + x, box.top + Math.min(bottom, this.height));
  }
}

// Nodes that are not there, and work that was lost.
function regionsOf(block, scene) {
  const machines = block.machines ?? block.nodes.map(([name]) => name);
  const rowsOf = (node) => block.machine
    ? block.machine.flatMap((each, row) => each === node ? [{ row, rows: 1 }] : [])
    : [{ row: block.firstRow[node], rows: block.firstRow[node + 1] - block.firstRow[node] }];
  const regions = Array.from(scene.away_node).flatMap((node, i) => rowsOf(node).map((rows) => ({
    from: scene.instants[scene.away_start[i]], to: scene.instants[scene.away_end[i]], what: `${machines[node]} is not there`, ...rows,
  })));
  Array.from(scene.lost_row ?? [], (row, i) => regions.push({
    from: scene.instants[scene.lost_start[i]], to: scene.instants[scene.lost_end[i]], what: "lost: its node or its trial failed", row, rows: 1,
  }));
  return regions;
}
