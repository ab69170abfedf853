// What labels are worth: what `more` of them add after `count`.
//
// They say a rise, not a total, since the difference of two totals would lose its digits.

const RISES = {
  geometric({ size, keep, log }, count, more) {
    if (keep === 0) return size * (Math.min(count + more, 1) - Math.min(count, 1));
    if (keep === 1) return size * more;
    return (size * Math.exp(count * log) * -Math.expm1(more * log)) / (1 - keep);
  },
  power({ size, have, exponent, ceiling }, count, more) {
    const start = Math.max(have, 1); // n^-a has no value at 0
    const grow = (from, by) =>
      size * from ** -exponent * -Math.expm1(-exponent * Math.log1p(by / from));
    const free = grow(start + count, more);
    if (ceiling === null || ceiling === undefined) return free;
    return Math.min(Math.max(ceiling - grow(start, count), Math.min(0, free)), free);
  },
  logarithmic: ({ size, have }, count, more) =>
    size * Math.log1p(more / (Math.max(have, 1) + count)),
  table(curve, count, more) {
    const [row, past] = placeInTable(curve, count);
    const [end, beyond] = placeInTable(curve, count + more);
    return curve.worths[end] - curve.worths[row] + (beyond - past);
  },
};

/** About how many labels are worth more than `slope` each, where a formula says so. */
export const REACHES = {
  geometric: ({ size, log }, slope) => 1 + Math.log(slope / size) / log,
  power: ({ size, have, exponent }, slope) =>
    ((size * exponent) / slope) ** (1 / (exponent + 1)) - Math.max(have, 1),
  logarithmic: ({ size, have }, slope) => size / slope - Math.max(have, 1),
};

/** The last row up to a count, and what is gained past it. */
function placeInTable({ counts, slopes }, count) {
  let low = 0;
  let high = counts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (counts[middle] <= count) low = middle;
    else high = middle - 1;
  }
  return [low, slopes[low] * (count - counts[low])];
}

/** A term of a problem, ready to be asked; `factor` is the task's weight. */
export function prepare(term, factor, scale = 1) {
  const made = { ...term, scale };
  if (term.curve === "table") {
    made.worths = term.worths.map((worth) => worth * factor);
    made.slopes = term.counts.map((count, i) =>
      i + 1 < term.counts.length
        ? (made.worths[i + 1] - made.worths[i]) / (term.counts[i + 1] - count)
        : 0,
    );
    // past its end a table gains nothing; one that falls goes on falling
    const last = term.counts.length - 1;
    if (last > 0) made.slopes[last] = Math.min(0, made.slopes[last - 1]);
  } else {
    made.size = term.size * factor;
    if (term.curve === "geometric") made.log = Math.log(term.keep);
    if (made.ceiling && factor > 0) made.ceiling = term.ceiling * factor;
  }
  return made;
}

export function riseOf(terms, count, more) {
  let total = 0;
  for (const term of terms) {
    total += RISES[term.curve](term, count * term.scale, more * term.scale);
  }
  return total;
}

/** Add up curves of one shape: a rising and a falling one of it make one that is concave again. */
export function merge(terms) {
  const merged = new Map();
  for (const term of terms) {
    const alone = term.curve === "table" || (term.ceiling ?? null) !== null;
    const shape = [term.curve, term.scale, term.keep, term.have, term.exponent];
    const key = alone ? merged.size : shape.join();
    if (merged.has(key)) merged.get(key).size += term.size;
    else merged.set(key, { ...term });
  }
  return [...merged.values()];
}
