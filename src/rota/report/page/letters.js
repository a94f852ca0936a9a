// Text and lines over the bars of a timeline.

function writeOver(chart, pen) {
  const ink = isDark() ? "#ececea" : "#1d1d1f";
  pen.fillStyle = pen.strokeStyle = ink;
  pen.textBaseline = "middle";
  writeAxis(chart, pen);
  writeRows(chart, pen);
  pen.save();
  pen.beginPath();
  pen.rect(chart.gutter, HEAD, chart.width - chart.gutter, chart.height - HEAD);
  pen.clip();
  writeLabels(chart, pen);
  outline(chart, pen, ink);
  pen.restore();
}

function writeAxis(chart, pen) {
  const { scene, view } = chart;
  pen.font = font(11);
  pen.textAlign = "center";
  const [from, to] = [view.from * scene.tick, view.to * scene.tick];
  for (const [at, label] of timeTicks(from, to, Math.max(2, (chart.width - chart.gutter) / 100))) {
    const x = chart.xOf(at / scene.tick);
    const half = pen.measureText(label).width / 2;
    pen.fillText(label, Math.min(Math.max(x, chart.gutter + half), chart.width - half - 1), 9);
    pen.fillRect(Math.round(x), HEAD - 5, 1, 5);
  }
}

function writeRows(chart, pen) {
  const { block, view, rowHeight } = chart;
  pen.textAlign = "left";
  let free = HEAD;
  block.nodes.forEach(([name, slots], node) => {
    const [top, bottom] = [block.firstRow[node], block.firstRow[node + 1]].map((row) => HEAD + (row - view.top) * rowHeight);
    if (bottom < HEAD || top > chart.height) return;
    if (top > HEAD && bottom - top >= 4) {
      pen.globalAlpha = 0.35;
      pen.fillRect(0, Math.round(top) - 0.5, chart.width, 0.5);
      pen.globalAlpha = 1;
    }
    const each = slots > 1 && rowHeight >= 11;
    const middle = each ? Math.max(top, HEAD) + rowHeight / 2 : (Math.max(top, HEAD) + Math.min(bottom, chart.height)) / 2;
    if (middle - 6 >= free && middle + 5 <= chart.height) {
      pen.fillText(fitted(pen, name, chart.gutter - (each ? 24 : 8)), 4, middle);
      free = middle + 7;
    }
    if (each) writeSlots(chart, pen, node, slots);
  });
}

function writeSlots(chart, pen, node, slots) {
  pen.globalAlpha = 0.65;
  pen.textAlign = "right";
  for (let slot = 0; slot < slots; slot++) {
    const y = HEAD + (chart.block.firstRow[node] + slot + 0.5 - chart.view.top) * chart.rowHeight;
    if (y > HEAD + 5 && y < chart.height) pen.fillText(String(slot), chart.gutter - 5, y);
  }
  pen.textAlign = "left";
  pen.globalAlpha = 1;
}

function writeLabels(chart, pen) {
  const { scene, rowHeight } = chart;
  if (rowHeight * scene.tallest < 12) return;
  pen.font = font(10.5);
  pen.textAlign = "left";
  const inks = chart.block.palette.map((colour) => lightness(pixelOf(colour)) > 0.45 ? "#111" : "#fff");
  const least = LABEL_WIDTH * (chart.view.to - chart.view.from) / (chart.width - chart.gutter);
  let count = 0;
  chart.visit((i, row) => {
    if (scene.to[i] - scene.from[i] < least) return;
    const { left, right, top, bottom } = chart.boxOf(i, row);
    if (bottom - top < 12 || count > LABELS) return;
    const from = Math.max(left, chart.gutter) + 4;
    const text = fitted(pen, chart.nameOf(i), Math.min(right, chart.width) - from - 3);
    pen.fillStyle = inks[chart.kindOf(i)];
    if (text) pen.fillText(text, from, (Math.max(top, HEAD) + Math.min(bottom, chart.height)) / 2 + 0.5);
    count += 1;
  });
}

// All bars of the job or trial that is pointed at.
function outline(chart, pen, ink) {
  if (chart.focused < 0) return;
  const item = chart.scene.item[chart.focused];
  pen.strokeStyle = ink;
  chart.visit((i, row) => {
    if (chart.scene.item[i] !== item) return;
    const { left, right, top, bottom } = chart.boxOf(i, row);
    pen.lineWidth = i === chart.focused ? 2.5 : 1.5;
    pen.strokeRect(left, top, Math.max(right - left, 1), bottom - top);
  });
}

const font = (size) => `${size}px system-ui, "DejaVu Sans", sans-serif`;

// Text that is cut off where there is no more room; nothing if hardly any would be left.
function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let count = text.length;
  while (count > 1 && pen.measureText(`${text.slice(0, count)}…`).width > room) count = Math.min(count - 1, Math.floor(count * 0.8));
  return count > 1 ? `${text.slice(0, count)}…` : "";
}
