// The words of the page. For a talk, it speaks of steps and sentences, numbered from 1 as the commands number them.

/** How the page calls the elements of these data. */
export function words({ talk }) {
  return {
    first: talk ? 1 : 0,
    z: (i) => (talk ? `step ${i + 1}` : `z_${i}`),
    x: (j) => (talk ? `sentence ${j + 1}` : `x_${j}`),
    said: (text) => (talk ? translated(text) : text),
  };
}

/** A text of the library in the words of a talk. */
const translated = (text) =>
  text
    .replace(/\bz_(\d+)/g, (_, i) => `step ${Number(i) + 1}`)
    .replace(/\bx_(\d+)/g, (_, j) => `sentence ${Number(j) + 1}`)
    .replace(/\b(?:an?|one) x\b/gi, "a sentence")
    .replace(/\b(?:a|one) z\b/gi, "a step")
    .replace(/\b(each|every|no) x\b/gi, "$1 sentence")
    .replace(/\b(each|every|no) z\b/gi, "$1 step")
    .replace(/\bx\b/g, "sentences")
    .replace(/\bz\b/g, "steps")
    .replace(/\bX\b/g, "the talk")
    .replace(/\bZ\b/g, "the steps");

/** Rename what the page itself says: texts with data-talk, and labels with data-talk-label. */
export function rename() {
  for (const e of document.querySelectorAll("[data-talk]")) e.textContent = e.dataset.talk;
  for (const e of document.querySelectorAll("[data-talk-label]")) e.setAttribute("aria-label", e.dataset.talkLabel);
}
