// Packed columns, as rota.report.timelines writes them: base64 of deflated bytes.

const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array };

function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
}

const unpackNames = (text) => inflated(text).json();

async function unpack(packed) {
  const buffer = await inflated(packed.bytes).arrayBuffer();
  const columns = {};
  let at = 0;
  for (const [name, type, count, sorted] of packed.columns) {
    const size = count * TYPES[type].BYTES_PER_ELEMENT;
    const values = new TYPES[type](buffer.slice(at, at + size));
    columns[name] = sorted ? added(values) : values;
    at += size;
  }
  return columns;
}

// Differences, whose sign is in the last bit, added up.
function added(differences) {
  const values = new Uint32Array(differences.length);
  let sum = 0;
  for (let i = 0; i < values.length; i++) {
    const each = differences[i];
    sum += each % 2 ? -(each + 1) / 2 : each / 2;
    values[i] = sum;
  }
  return values;
}

// Counts → where each begins; one more at the end.
function offsets(counts) {
  const found = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) found[i + 1] = found[i] + counts[i];
  return found;
}
