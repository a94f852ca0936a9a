// One run as columns: bars by row and start, and quick ways to find what is somewhere.

class Scene {
  constructor(run, columns) {
    Object.assign(this, columns);
    this.name = run.name;
    this.about = run.about;
    this.tick = run.tick_s;
    this.row = offsets(columns.counts);
    this.rows = columns.counts.length;
    this.bars = columns.start.length;
    this.from = this.start.map((at) => this.instants[at]);
    this.to = this.from.map((_, i) => this.instants[this.start[i] + this.length[i]]);
    this.reach = reaches(this.to, this.row);
    this.tallest = this.height.reduce((most, each) => Math.max(most, each), 1);
    this.end = Math.max(1, this.instants.at(-1) ?? 1);
    if (columns.events) this.event = offsets(columns.events);
  }

  // The first bar of a row that may end after a moment: all before it have ended.
  firstIn(row, moment) {
    let [low, high] = [this.row[row], this.row[row + 1]];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.reach[middle] > moment) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // Calls back with each bar that is in some rows between two moments.
  each(firstRow, lastRow, from, to, call) {
    for (let row = Math.max(0, firstRow - this.tallest + 1); row <= Math.min(lastRow, this.rows - 1); row++) {
      const end = this.row[row + 1];
      for (let i = this.firstIn(row, from); i < end && this.from[i] < to; i++) {
        if (this.to[i] > from && row + this.height[i] > firstRow) call(i, row);
      }
    }
  }

  // The bar at a place, given as a row and a part of it, and a moment; -1 if there is none.
  at(place, moment, slack = 0) {
    const row = Math.floor(place);
    let [found, nearest] = [-1, Infinity];
    this.each(row, row, moment - slack, moment + slack + 1e-9, (i, first) => {
      const low = first + this.place[i] / this.of[i];
      const high = this.of[i] > 1 ? low + 1 / this.of[i] : first + this.height[i];
      const off = Math.max(this.from[i] - moment, moment - this.to[i], 0);
      if (place >= low && place < high && off < nearest) [found, nearest] = [i, off];
    });
    return found;
  }

  rowOf(bar) {
    let [low, high] = [0, this.rows];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.row[middle + 1] > bar) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

// The latest end of all bars of a row so far, so that it never falls along the row.
function reaches(ends, rows) {
  const found = new Uint32Array(ends.length);
  for (let row = 0; row + 1 < rows.length; row++) {
    let latest = 0;
    for (let i = rows[row]; i < rows[row + 1]; i++) found[i] = latest = Math.max(latest, ends[i]);
  }
  return found;
}
