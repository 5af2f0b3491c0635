// Requests with `fetch`, as browsers have it.

/** Sends a request; the promise is kept once the head of the answer is there. */
export async function fetchTransport({ url, method, headers, body, signal }) {
  const answer = await fetch(url, { method, headers, body, signal, redirect: "manual", cache: "no-store" });
  return { status: answer.status, header: (name) => answer.headers.get(name) ?? undefined, body: read(answer.body) };
}

async function* read(stream) {
  if (!stream) return;
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.releaseLock();
  }
}
