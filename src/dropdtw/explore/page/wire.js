// Communication with the server: requests are JSON; responses are JSON, or a JSON header followed by arrays.

const KINDS = { u1: Uint8Array, i4: Int32Array, f4: Float32Array };

/** Decode the header and the arrays of a binary response; see `pack` in server.py. */
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let place = 4 + length;
  for (const [name, kind, size] of header.arrays) {
    header[name] = new KINDS[kind](buffer, place, size);
    place += Math.ceil(header[name].byteLength / 4) * 4;
  }
  return header;
}

async function answer(response) {
  if (response.headers.get("content-type") === "application/octet-stream") return unpack(await response.arrayBuffer());
  const found = await response.json();
  if (!response.ok) throw new Error(found.error);
  return found;
}

export async function get(path) {
  return answer(await fetch(path));
}

export async function post(path, question, signal) {
  const headers = { "Content-Type": "application/json" };
  return answer(await fetch(path, { method: "POST", headers, body: JSON.stringify(question), signal }));
}

/** Wrap `work` so that one call runs at a time. Of the calls made meanwhile, only the latest runs next. */
export function latest(work) {
  let wanted = null, running = false;
  return async (argument) => {
    wanted = { argument };
    if (running) return;
    running = true;
    while (wanted) {
      const { argument: now } = wanted;
      wanted = null;
      await work(now, () => wanted !== null);
    }
    running = false;
  };
}
