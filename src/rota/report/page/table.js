// A table that can be sorted by any column; the best of each is marked.

function tableBlock(block) {
  const body = element("tbody");
  const rows = block.rows.map((cells, number) => tableRow(block, cells, number));
  const heads = block.heads.map((head, column) => tableHead(block, head, column, rows, body));
  body.append(...rows);
  const whole = element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body);
  markWidest(block, rows);
  return element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": block.title }, whole);
}

function tableRow(block, cells, number) {
  const made = cells.map(([, text], column) => {
    if (column === 0) {
      const colour = block.colours[number];
      return element("th", { scope: "row" }, ...(colour ? [chip(colour), text] : [text]));
    }
    return element("td", { className: typeof cells[column][0] === "string" ? "words" : "" }, text);
  });
  block.heads.forEach((head, column) => {
    if (isBest(block, column, number)) {
      made[column].classList.add("best");
      made[column].title = "the best";
    }
  });
  return element("tr", {}, ...made);
}

function isBest(block, column, number) {
  const wanted = block.heads[column].best;
  const values = block.rows.map((row) => row[column][0]).filter((each) => each !== null);
  const best = wanted === "least" ? Math.min(...values) : Math.max(...values);
  const level = values.filter((each) => each === best).length;
  return wanted !== "" && level <= values.length / 2 && block.rows[number][column][0] === best;
}

// In the first column of numbers, how much each is of the largest.
function markWidest(block, rows) {
  const column = block.heads.findIndex((head) => head.best);
  if (column < 0 || rows.length < 2 || !block.colours.length) return;
  const values = block.rows.map((row) => row[column][0] ?? 0);
  const most = Math.max(...values);
  rows.forEach((row, number) => {
    row.cells[column].classList.add("measured");
    row.cells[column].style.setProperty("--share", `${100 * values[number] / (most || 1)}%`);
    row.cells[column].style.setProperty("--colour", themed(block.colours[number]));
  });
}

function tableHead(block, head, column, rows, body) {
  const button = element("button", { type: "button", title: head.hint }, head.name);
  const made = element("th", { scope: "col" }, button);
  made.className = column === 0 || block.rows.some((row) => typeof row[column][0] === "string") ? "words" : "";
  button.addEventListener("click", () => {
    const best = head.best === "most" ? "descending" : "ascending";
    const other = best === "ascending" ? "descending" : "ascending";
    const order = made.getAttribute("aria-sort") === best ? other : best;
    for (const each of made.parentElement.cells) each.removeAttribute("aria-sort");
    made.setAttribute("aria-sort", order);
    body.append(...sorted(block, column, order).map((number) => rows[number]));
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
