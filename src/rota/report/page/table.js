// A table that can be sorted by any column; the best of each is marked.

function tableBlock(block) {
  const body = element("tbody");
  const bests = block.heads.map((_, column) => bestOf(block, column));
  const widest = widestOf(block);
  const made = [];
  const state = { order: block.rows.map((_, number) => number), whole: !block.fold || block.rows.length <= block.fold };
  const show = () => {
    const order = state.whole ? state.order : state.order.slice(0, block.fold);
    body.replaceChildren(...order.map((number) => made[number] ??= tableRow(block, number, bests, widest)));
  };
  const heads = block.heads.map((head, column) => tableHead(block, head, column, (order) => {
    state.order = order;
    show();
  }));
  show();
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body);
  const scroll = element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": block.title }, table);
  return state.whole ? scroll : element("div", {}, scroll, unfold(block, state, show));
}

// Rows that are not shown are not there: a page with many of them opens as fast.
function unfold(block, state, show) {
  const button = element("button", { type: "button", className: "unfold" }, `Show all ${block.rows.length.toLocaleString("en")} rows`);
  button.addEventListener("click", () => {
    state.whole = true;
    button.remove();
    show();
  });
  return button;
}

function tableRow(block, number, bests, widest) {
  const cells = block.rows[number];
  const made = cells.map(([value, text], column) => {
    if (column === 0) {
      const colour = block.colours[number];
      return element("th", { scope: "row" }, ...(colour ? [chip(colour), text] : [text]));
    }
    return element("td", { className: typeof value === "string" ? "words" : "" }, text);
  });
  bests.forEach((best, column) => {
    if (best !== null && cells[column][0] === best) {
      made[column].classList.add("best");
      made[column].title = "the best";
    }
  });
  if (widest) markWidest(block, number, made[widest.column], widest);
  return element("tr", {}, ...made);
}

// The best value of a column; null if none is, or if half of the rows are as good.
function bestOf(block, column) {
  const wanted = block.heads[column].best;
  const values = block.rows.map((row) => row[column][0]).filter((each) => each !== null);
  if (wanted === "" || !values.length) return null;
  const best = values.reduce((one, other) => (wanted === "least" ? other < one : other > one) ? other : one);
  return values.filter((each) => each === best).length <= values.length / 2 ? best : null;
}

// In the first column of numbers, how much each is of the largest.
function widestOf(block) {
  const column = block.heads.findIndex((head) => head.best);
  if (column < 0 || block.rows.length < 2 || !block.colours.length) return null;
  return { column, most: block.rows.reduce((most, row) => Math.max(most, row[column][0] ?? 0), 0) || 1 };
}

function markWidest(block, number, cell, { column, most }) {
  cell.classList.add("measured");
  cell.style.setProperty("--share", `${100 * (block.rows[number][column][0] ?? 0) / most}%`);
  cell.style.setProperty("--colour", themed(block.colours[number]));
}

function tableHead(block, head, column, arrange) {
  const button = element("button", { type: "button", title: head.hint }, head.name);
  const made = element("th", { scope: "col" }, button);
  made.className = column === 0 || block.rows.some((row) => typeof row[column][0] === "string") ? "words" : "";
  button.addEventListener("click", () => {
    const best = head.best === "most" ? "descending" : "ascending";
    const other = best === "ascending" ? "descending" : "ascending";
    const order = made.getAttribute("aria-sort") === best ? other : best;
    for (const each of made.parentElement.cells) each.removeAttribute("aria-sort");
    made.setAttribute("aria-sort", order);
    arrange(sorted(block, column, order));
  });
  return made;
}

// Numbers of rows, in order; equal ones stay as they are, and those without a value come last.
function sorted(block, column, order) {
  const sign = order === "ascending" ? 1 : -1;
  const value = (number) => block.rows[number][column][0];
  return block.rows.map((_, number) => number).sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  });
}
