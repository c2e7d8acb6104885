// Asking the server, with the token that it knows this page by.

const KEY = "review-token";
let token = given();

/** From the address, which no longer shows it then, or as this tab keeps it (no other one does). */
function given() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found === null) return kept();
  history.replaceState(null, "", location.pathname);
  keep(found);
  return found;
}
function kept() {
  try { return sessionStorage.getItem(KEY); } catch { return null; }
}
function keep(text) {
  try { sessionStorage.setItem(KEY, text); } catch { /* not allowed: good until the page is reloaded */ }
}

// Pasted where the page is open already, the address loads nothing by itself.
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload();
});

/** The token may have been one for a single use: have it changed for the one that stays. */
export async function enter() {
  ({ token } = await ask("/api/token", {}));
  keep(token);
}

async function send(path, options) {
  if (!token) {
    throw new Error("Open the whole address that bayeslink review printed, with the token at its end. Only a tab in which that was opened can show the review.");
  }
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...options?.headers, "X-Review-Token": token } });
  } catch {
    throw new Error("The server does not answer. What was saved is safe: start bayeslink review again and open the address it prints.");
  }
  if (response.status === 403) {
    throw new Error("This page was opened with the address of a server that has ended, or with part of an address. Open the whole address that bayeslink review printed last.");
  }
  if (!response.ok) throw new Error((await response.json()).error);
  return response;
}

/** What the server answers to a question or, with a body, to a change. */
export async function ask(path, body) {
  const response = await send(path, body && {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  return response.json();
}

/** Have the browser save a file of the server: a mere link to it would not bear the token. */
export async function download(name) {
  const response = await send(`/files/${name}`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the browser may still be reading it
}
