// The planner of allotment for the page: the exact plan of a problem (see advice/plain_problem.py).
//
//   maximise  sum over v of g_v(x_v)   with   use . x + fixed <= limits,   x_v in whole lots
//
// A variable v is a task's count, or the argument of a curve that several tasks feed. Its counts lie
// on arms: ranges on which money is a straight line (a price tier; nothing bought, before a fee).
// Row 0 of the limits is money, then come the caps, then a link for each shared curve, which takes
// at most what its tasks put in. Everything is counted from the floors, what must be bought anyway.
//
// It is solved as in src/allotment/solver. For prices y >= 0 of the limits no plan is worth more than
//   D(y) = y . limits + sum over v of max_x (g_v(x) - y . use_v x),
// and a plan falls short of D(y) by exactly the sum of its losses: each variable's distance from its
// own best answer to y, and y times what is left of each limit. So a plan within `width` of the bound
// is made of counts that lose at most `width` each. They are few, because curves bend; all of them are
// put together, task by task. Where that would be too many, the region is split in two.
//
// Plans whose worth beyond the floors differs by rounding only (EQUAL) are equal: of these it is the
// one of least money, then the one with more of earlier tasks. So the last digits of `exp`, in which
// machines differ, decide nothing. Amounts are whole numbers below 2^53 throughout.

const EQUAL = 2e-13; // plans that differ by this share of what is decided are equal: a thousand last digits
const PROVED = 1e-9; // a gap of at most this share of the worth is called none
const NOISE = 2 ** -50; // rounding of a worth, as a share of it, for each of its terms
const SETTLED = 9e-10; // a plan within this share of its bound is improved only where that is cheap
const LONGEST_LIST = 20_000; // partial plans in one step of a list
const SHORT_LIST = 3_000; // the same where only a last digit is at stake
const WIDEST = 5_000; // counts of one task on either side
const MOST_REGIONS = 300;
const MOST_WORK = 3_000_000; // partial plans in all, about a second
const MOST_BUYS = 120;
const MOST_VARIED = 40; // tasks whose count may as well be another; of more, no list is ever whole
const MOST_TOGETHER = 5; // tasks that are varied together to improve a plan
const MOST_TRIED = 30; // tasks that are varied at all to improve it

// ---- Curves: what `more` labels add after `count` ---------------------------------------------------
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
const REACHES = {
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
function prepare(term, factor, scale = 1) {
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

function riseOf(terms, count, more) {
  let total = 0;
  for (const term of terms) {
    total += RISES[term.curve](term, count * term.scale, more * term.scale);
  }
  return total;
}

/** Add up curves of one shape: a rising and a falling one of it make one that is concave again. */
function merge(terms) {
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

// ---- The problem as a model ---------------------------------------------------------------------------

const floorOf = (task) => task.frozen ?? Math.ceil(task.least / task.lot) * task.lot;

function ceilingOf(task) {
  if (task.frozen !== null) return task.frozen;
  const most = Math.min(task.pool ?? Infinity, task.most ?? Infinity);
  return most === Infinity ? Infinity : Math.floor(most / task.lot) * task.lot;
}

/** What so many new labels cost, in units of money, fee and tiers included. */
export function priceOf(task, count) {
  if (count <= 0) return 0;
  return task.prices.reduce((total, [after, price], i) => {
    const end = task.prices[i + 1]?.[0] ?? Infinity;
    return total + Math.max(0, Math.min(count, end) - after) * price;
  }, task.fee);
}

/** What the counts cost together, in units of money. */
export const spendOf = (problem, counts) =>
  problem.tasks.reduce((total, task, i) => total + priceOf(task, counts[i]), 0);

const usedOf = (problem, cap, counts) =>
  problem.tasks.reduce((total, task, i) => total + (cap.use[task.name] ?? 0) * counts[i], 0);

/** Every pair of limits that no plan can meet together, in words. */
export function findClashes(problem) {
  const { tasks, caps } = problem;
  const floors = tasks.map(floorOf);
  const found = [];
  for (const task of tasks) {
    const ceiling = Math.min(task.pool ?? Infinity, task.most ?? Infinity);
    const whole = Math.floor(ceiling / task.lot) * task.lot;
    const least = floorOf(task);
    if (least > whole || (task.frozen ?? least) < task.least || least % task.lot) {
      found.push(`the limits of ${task.name} leave no count that can be bought`);
    }
  }
  if (found.length) return found;
  if (spendOf(problem, floors) > problem.budget) {
    found.push("what must be bought costs more than the budget");
  }
  for (const cap of caps) {
    if (usedOf(problem, cap, floors) > cap.limit) {
      found.push(`what must be bought takes more of ${cap.name} than there is`);
    }
  }
  return found;
}

/** Weighted curves of single tasks, and the curves that several tasks feed. */
function splitGains(problem) {
  const { tasks } = problem;
  const index = new Map(tasks.map((task, i) => [task.name, i]));
  const own = tasks.map(() => []);
  const links = new Map();
  const link = (key, shares, step, most) => {
    if (!links.has(key)) links.set(key, { shares, step, most, terms: [] });
    return links.get(key).terms;
  };
  for (const [i, task] of tasks.entries()) {
    if (!task.weight) continue;
    const givers = problem.count_implied
      ? tasks.flatMap((other, j) => (other.implies.includes(task.name) ? [j] : []))
      : [];
    for (const term of problem.gains[task.name]) {
      const shares = term.of || givers.length ? new Array(tasks.length).fill(0) : null;
      if (term.of) {
        const fed = Object.entries(term.of.shares);
        for (const [name, share] of fed) shares[index.get(name)] = share;
        if (fed.length === 1) {
          // labels of one other task alone: a curve of that task's own count
          const [[name, share]] = fed;
          own[index.get(name)].push(prepare(term, task.weight, share * term.of.step));
        } else {
          const key = JSON.stringify([shares, term.of.step]);
          link(key, shares, term.of.step, null).push(prepare(term, task.weight, term.of.step));
        }
      } else if (givers.length) {
        for (const j of [i, ...givers]) shares[j] = 1;
        link(`implied ${i}`, shares, 1, task.pool).push(prepare(term, task.weight));
      } else {
        own[i].push(prepare(term, task.weight));
      }
    }
  }
  return [own.map(merge), [...links.values()].map((each) => ({ ...each, terms: merge(each.terms) }))];
}

/** The ranges of a task's counts on which its money is a straight line, counted from its floor. */
function listArms(task, spare, most, harmful) {
  const low = floorOf(task);
  const ceiling = ceilingOf(task);
  const paid = priceOf(task, low);
  const arm = (from, to, price, money) => ({
    low: from - low, high: to - low, lot: task.lot, price, fixed: money + price * low - paid,
  });
  if (harmful || ceiling === low) return [arm(low, low, 0, paid)];
  const arms = low === 0 && task.fee ? [arm(0, 0, 0, 0)] : [];
  let fixed = task.fee;
  for (const [i, [after, price]] of task.prices.entries()) {
    const end = task.prices[i + 1]?.[0] ?? Infinity;
    const money = fixed - price * after;
    const first = after || task.fee ? (Math.floor(after / task.lot) + 1) * task.lot : 0;
    const start = Math.max(low, first);
    let stop = Math.min(Math.floor((spare - money) / price), most);
    // One lot more than can be had, so that the limit itself sets the price of money; but not where
    // even the first one is out of reach: it would hide what all others are worth.
    if (stop >= (start > low ? start : start + task.lot)) stop += task.lot;
    stop = Math.floor(Math.min(stop, end, ceiling) / task.lot) * task.lot;
    if (start <= stop) arms.push(arm(start, stop, price, money));
    fixed += price * (end - after);
  }
  return arms.length ? arms : [arm(low, low, 0, paid)];
}

function build(problem) {
  const { tasks, caps, budget } = problem;
  const floors = tasks.map(floorOf);
  const [own, links] = splitGains(problem);
  const spent = spendOf(problem, floors);
  const taken = caps.map((cap) => usedOf(problem, cap, floors));
  const plain = 1 + caps.length;
  const variables = tasks.map((task, i) => {
    const most = caps.map((cap, c) =>
      cap.use[task.name]
        ? Math.floor((cap.limit - taken[c]) / cap.use[task.name]) + floors[i]
        : Infinity,
    );
    // a falling curve need not be concave, but then its least is best
    const harmful = own[i].some((term) => term.curve !== "table" && term.size < 0);
    const arms = listArms(task, budget - spent + priceOf(task, floors[i]), Math.min(...most), harmful);
    for (const arm of arms) {
      const uses = caps.map((cap) => cap.use[task.name] ?? 0);
      arm.use = [arm.price, ...uses, ...links.map(({ shares }) => -shares[i])];
    }
    return { terms: own[i], base: floors[i], arms };
  });
  const limits = [budget - spent, ...caps.map((cap, c) => cap.limit - taken[c])];
  for (const [at, { shares, most, terms }] of links.entries()) {
    const sum = (counts) => shares.reduce((total, share, i) => total + share * counts[i], 0);
    const given = sum(floors);
    const room = most ?? Infinity;
    const start = Math.min(given, room);
    const tops = tasks.map((_, i) => floors[i] + variables[i].arms.at(-1).high);
    const use = new Array(plain + links.length).fill(0);
    use[plain + at] = 1;
    limits.push(given - start);
    const high = Math.min(sum(tops), room) - start;
    variables.push({ terms, base: start, arms: [{ low: 0, high, lot: 1, fixed: 0, use }] });
  }
  for (const variable of variables) {
    for (const arm of variable.arms) Object.assign(arm, { terms: variable.terms, hint: 0 });
  }
  return { tasks: tasks.length, links: links.length, plain, variables, limits };
}

/** What `more` steps add to a variable's curve after `count`; fewer where `more` is below 0. */
function rise({ terms, base }, count, more) {
  if (more < 0) return -riseOf(terms, base + count + more, -more);
  return more ? riseOf(terms, base + count, more) : 0;
}

/** Task counts followed by the arguments of shared curves, which get all that their tasks put in. */
function complete(model, counts) {
  const all = counts.slice(0, model.tasks);
  for (let link = 0; link < model.links; link++) {
    const row = model.plain + link;
    let given = model.limits[row];
    for (let i = 0; i < model.tasks; i++) given -= model.variables[i].arms[0].use[row] * counts[i];
    all.push(Math.min(given, model.variables[model.tasks + link].arms[0].high));
  }
  return all;
}

/** What a plan adds to the floors' worth. */
function worthOf(model, counts) {
  const all = complete(model, counts);
  return all.reduce((total, count, v) => total + rise(model.variables[v], 0, count), 0);
}

function armAt({ arms }, count) {
  let at = 0;
  while (at + 1 < arms.length && arms[at + 1].low <= count) at++;
  return arms[at];
}

/** What a count of a variable takes of every limit. */
function takes(variable, count) {
  const arm = armAt(variable, count);
  const use = arm.use.map((each) => each * count);
  use[0] += arm.fixed;
  return use;
}

/** What the counts take of money and caps. */
function usedBy(model, counts) {
  const used = new Array(model.plain).fill(0);
  for (let i = 0; i < model.tasks; i++) {
    const use = takes(model.variables[i], counts[i]);
    for (let row = 0; row < model.plain; row++) used[row] += use[row];
  }
  return used;
}

const fits = (model, counts) => usedBy(model, counts).every((used, row) => used <= model.limits[row]);

// ---- Prices: a bound on every plan, and the place where good ones lie ----------------------------------

const dot = (a, b) => a.reduce((total, each, i) => total + each * b[i], 0);

/** All of the model: the least and the most of each variable. */
const whole = (model) => ({
  low: model.variables.map(({ arms }) => arms[0].low),
  high: model.variables.map(({ arms }) => arms.at(-1).high),
});

/** The best count of an arm at a slope: the last lot that is worth more than it costs. */
function answerArm(variable, arm, low, high, slope) {
  const { lot } = arm;
  const most = (high - low) / lot;
  const pays = (lots) => rise(variable, low + (lots - 1) * lot, lot) > slope * lot;
  // lots pay up to some number and not beyond; it is looked for around what a formula says, or around
  // the last answer
  const [term] = variable.terms;
  let near = arm.hint;
  if (variable.terms.length === 1 && slope > 0 && REACHES[term.curve]) {
    near = REACHES[term.curve](term, slope / term.scale) / term.scale - variable.base;
  }
  let good = Math.min(Math.max(Math.round((near - low) / lot) || 0, 0), most);
  let bad = good;
  let step = 1;
  if (good === 0 || pays(good)) {
    do {
      bad = good + step;
      if (bad > most || !pays(bad)) break;
      good = bad;
      step *= 4;
    } while (true);
    bad = Math.min(bad, most + 1);
  } else {
    do {
      bad = good;
      good = Math.max(good - step, 0);
      step *= 4;
    } while (good > 0 && !pays(good));
  }
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (pays(middle)) good = middle;
    else bad = middle;
  }
  arm.hint = low + good * lot;
  return arm.hint;
}

/** Every variable's best answer to the prices; ties go to fewer labels. */
function respond(model, part, prices) {
  const slack = model.limits.slice();
  const best = [];
  let bound = dot(prices, model.limits);
  model.variables.forEach((variable, v) => {
    let top = null;
    for (const arm of variable.arms) {
      const low = Math.max(arm.low, part.low[v]);
      const high = Math.min(arm.high, part.high[v]);
      if (low > high) continue;
      const slope = dot(prices, arm.use);
      const count = low === high ? low : answerArm(variable, arm, low, high, slope);
      const profit = rise(variable, 0, count) - slope * count - prices[0] * arm.fixed;
      if (top === null || profit > top.profit) top = { arm, count, profit, slope };
    }
    best.push(top);
    bound += top.profit;
    for (let row = 0; row < slack.length; row++) slack[row] -= top.arm.use[row] * top.count;
    slack[0] -= top.arm.fixed;
  });
  return { prices, best, bound, slack };
}

const choiceOf = (model, answer) => answer.best.slice(0, model.tasks).map(({ count }) => count);

/** A price of each limit above which no variable wants any more of it. */
function highestPrices(model, part) {
  const prices = new Array(model.limits.length).fill(0);
  const first = model.variables.map((variable, v) => {
    let top = 0;
    if (part.low[v] >= part.high[v]) return 0;
    for (const arm of variable.arms) {
      const low = Math.max(arm.low, part.low[v]);
      if (low <= Math.min(arm.high, part.high[v])) {
        top = Math.max(top, rise(variable, low, arm.lot) / arm.lot);
      }
    }
    return top;
  });
  // a link's price is at most its curve's first slope; that is worth something to the tasks
  for (let link = 0; link < model.links; link++) {
    prices[model.plain + link] = first[model.tasks + link];
  }
  for (let i = 0; i < model.tasks; i++) {
    for (const { use } of model.variables[i].arms) {
      let slope = first[i];
      for (let row = model.plain; row < prices.length; row++) slope -= prices[row] * use[row];
      for (let row = 0; row < model.plain; row++) {
        if (use[row] > 0) prices[row] = Math.max(prices[row], slope / use[row]);
      }
    }
  }
  return prices;
}

/** Prices that make the bound small: [that answer, one just on the feasible side if money is the only limit]. */
const findPrices = (model, part, start, close = 1e-13) =>
  model.limits.length === 1 ? priceMoney(model, part) : priceAll(model, part, start, close);

/** Money only: the price of money at which spending crosses the budget. */
function priceMoney(model, part) {
  let top = highestPrices(model, part)[0];
  const free = respond(model, part, [0]);
  if (top <= 0) return [free, free];
  // at this price the whole budget is worth less than rounding: what is not bought adds nothing
  let least = (Math.max(free.bound, 0) * 1e-13) / Math.max(1, model.limits[0]);
  least = Math.min(Math.max(least, top * 1e-60), top);
  let cheap = respond(model, part, [least]);
  if (cheap.slack[0] >= 0) return [cheap, cheap];
  top *= 1 + 1e-9;
  let dear = respond(model, part, [top]);
  let [low, high] = [Math.log(least), Math.log(top)];
  let turn = 0;
  while (high - low > 4e-16 * Math.max(1, Math.abs(high)) && cheap.slack[0] < 0) {
    if (lotApart(cheap, dear)) break;
    // false position, and every third step a plain half: few steps where spending is smooth, never many
    const [below, above] = [cheap.slack[0], dear.slack[0]];
    let share = 0.5;
    if (turn !== 2 && above > below) {
      share = Math.min(Math.max(below / (below - above), 1e-3), 1 - 1e-3);
    }
    turn = (turn + 1) % 3;
    const middle = low + share * (high - low);
    if (!(low < middle && middle < high)) break;
    const answer = respond(model, part, [Math.exp(middle)]);
    if (answer.slack[0] < 0) {
      [low, cheap] = [middle, answer];
    } else {
      [high, dear] = [middle, answer];
      if (answer.slack[0] === 0) cheap = answer;
    }
  }
  const apart = lotApart(cheap, dear);
  if (apart) {
    // the price at which that lot pays is the best one
    const { variable, lots, arm, from } = apart;
    const gain = rise(model.variables[variable], from, lots);
    const exact = respond(model, part, [gain / (lots * arm.use[0])]);
    if (exact.bound <= Math.min(cheap.bound, dear.bound)) return [exact, dear];
  }
  return [cheap.bound <= dear.bound ? cheap : dear, dear];
}

/** The one lot of one task, bought at one price, by which two answers differ; null if by more. */
function lotApart(cheap, dear) {
  let found = null;
  for (let v = 0; v < cheap.best.length; v++) {
    const [more, less] = [cheap.best[v], dear.best[v]];
    if (more.count === less.count) continue;
    const lots = more.count - less.count;
    if (found || more.arm !== less.arm || lots !== more.arm.lot) return null;
    found = { variable: v, lots, arm: more.arm, from: less.count };
  }
  return found;
}

/** Several limits: the ellipsoid method, which tells how far from the best prices it can still be. */
function priceAll(model, part, start, close) {
  const tops = highestPrices(model, part);
  const free = tops.flatMap((top, row) => (top > 0 ? [row] : []));
  const size = free.length;
  let best = respond(model, part, tops.map(() => 0));
  if (!size) return [best, best];
  let centre = free.map((row) => (start ? Math.min(Math.max(start[row] / tops[row], 0), 1) : 0.5));
  // a ball around all prices up to the highest
  let shape = free.map((_, i) => free.map((_, j) => (i === j ? (start ? size / 100 : size) : 0)));
  for (let turn = 0; turn < 2000; turn++) {
    const outside = centre.findIndex((each) => each < 0);
    let slope;
    let depth;
    if (outside >= 0) {
      slope = free.map((_, i) => (i === outside ? -1 : 0));
      depth = -centre[outside];
    } else {
      const prices = tops.map(() => 0);
      free.forEach((row, i) => (prices[row] = centre[i] * tops[row]));
      const answer = respond(model, part, prices);
      if (answer.bound < best.bound) best = answer;
      slope = free.map((row) => answer.slack[row] * tops[row]);
      depth = answer.bound - best.bound;
    }
    const step = shape.map((row) => dot(row, slope));
    const length = Math.sqrt(Math.max(dot(slope, step), 0));
    if (length <= close * Math.max(Math.abs(best.bound), 1e-300)) break;
    [centre, shape] = cutEllipsoid(centre, shape, step.map((each) => each / length), depth / length);
  }
  return [best, best];
}

/** The smallest ellipsoid around the part of this one that lies below the cut. */
function cutEllipsoid(centre, shape, step, deep) {
  const size = centre.length;
  const depth = Math.min(deep, 0.999);
  if (size === 1) {
    const half = Math.sqrt(shape[0][0]);
    const shrunk = shape[0][0] * ((1 - depth) / 2) ** 2;
    return [[centre[0] - (Math.sign(step[0]) * half * (1 + depth)) / 2], [[shrunk]]];
  }
  const move = (1 + size * depth) / (size + 1);
  const shrink = (2 * (1 + size * depth)) / ((size + 1) * (1 + depth));
  const grow = (size ** 2 * (1 - depth ** 2)) / (size ** 2 - 1);
  return [
    centre.map((each, i) => each - move * step[i]),
    // the mean of both halves, lest rounding make it lopsided
    shape.map((row, i) =>
      row.map((each, j) => grow * ((each + shape[j][i]) / 2 - shrink * step[i] * step[j])),
    ),
  ];
}

// ---- A good plan at once -------------------------------------------------------------------------------

/** What everyone takes at prices just high enough to fit, then the best buys that still do. */
function fill(model, part, answer, feasible) {
  const counts = shrink(model, part, feasible);
  const wanted = choiceOf(model, answer);
  for (let i = 0; i < model.tasks; i++) {
    if (wanted[i] <= counts[i]) continue;
    counts[i] = afford(model, counts, i, wanted[i]);
    if (model.limits.length > 1) break; // what it takes may be better left to others
  }
  return growPlan(model, part, counts, answer.prices);
}

/** The answer to the lowest multiple of the prices whose answer fits. */
function shrink(model, part, feasible) {
  // a link's price only says how tasks share its worth
  const raise = (factor) => feasible.prices.map((each, row) => (row < model.plain ? factor : 1) * each);
  const ask = (factor) => choiceOf(model, respond(model, part, raise(factor)));
  let [low, high] = [1, 1];
  let found = choiceOf(model, feasible);
  while (!fits(model, found) && high < 1e6) {
    [low, high] = [high, high * 2];
    found = ask(high);
  }
  if (!fits(model, found)) return part.low.slice(0, model.tasks);
  for (let turn = 0; high > 1 && turn < 20; turn++) {
    const middle = (low + high) / 2;
    const trial = ask(middle);
    if (fits(model, trial)) [high, found] = [middle, trial];
    else low = middle;
  }
  return found;
}

/** Buy what is worth most for what it takes, a quarter of what is left at a time, then single lots. */
function growPlan(model, part, given, prices) {
  const counts = given.slice();
  const highest = Math.max(...prices.slice(0, model.plain));
  // a limit without a price still counts a little, so that of two equal buys the smaller one wins
  const rates = prices.slice(0, model.plain).map((each) => (highest ? Math.max(each, 1e-9 * highest) : 1));
  for (let turn = 0; turn < MOST_BUYS; turn++) {
    const used = usedBy(model, counts);
    const slack = used.map((each, row) => model.limits[row] - each);
    const all = complete(model, counts);
    const fed = model.variables.slice(model.tasks).map((variable, l) => rise(variable, all[model.tasks + l], 1));
    let top = { density: 0 };
    for (let i = 0; i < model.tasks; i++) {
      const variable = model.variables[i];
      const { lot } = variable.arms[0];
      if (counts[i] + lot > part.high[i]) continue;
      const before = takes(variable, counts[i]);
      const step = takes(variable, counts[i] + lot).map((each, row) => each - before[row]);
      if (slack.some((left, row) => step[row] > left)) continue;
      let worth = rise(variable, counts[i], lot);
      fed.forEach((each, l) => (worth -= each * variable.arms[0].use[model.plain + l] * lot));
      const density = worth / Math.max(dot(rates, step), 1e-300);
      if (density > top.density) top = { density, task: i, step, lot };
    }
    if (!(top.density > 0)) break;
    const times = Math.floor(Math.min(...slack.map((left, row) => left / Math.max(top.step[row], 1))) / 4);
    const bulk = Math.min(counts[top.task] + Math.max(times, 1) * top.lot, part.high[top.task]);
    counts[top.task] = afford(model, counts, top.task, bulk);
  }
  return counts;
}

/** The most of one task, up to `wanted`, that fits beside the other counts. */
function afford(model, counts, task, wanted) {
  const { lot } = model.variables[task].arms[0];
  const trial = counts.slice();
  let [low, high] = [Math.floor(counts[task] / lot), Math.floor(wanted / lot)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    trial[task] = middle * lot;
    if (fits(model, trial)) low = middle;
    else high = middle - 1;
  }
  return Math.max(low * lot, counts[task]);
}

// ---- Lists: all plans near a bound ---------------------------------------------------------------------

/** What a count of a variable loses against its best answer to the prices. */
function lossOf(variable, top, arm, prices, count) {
  if (arm === top.arm) {
    const more = count - top.count;
    return Math.max(top.slope * more - rise(variable, top.count, more), 0);
  }
  const profit = rise(variable, 0, count) - dot(prices, arm.use) * count - prices[0] * arm.fixed;
  return Math.max(top.profit - profit, 0);
}

/** The counts of one task that a plan within `width` of the bound can have, in rising order; `whole` if all. */
function windowOf(model, part, answer, task, centre, width, widest) {
  const variable = model.variables[task];
  const top = answer.best[task];
  const picks = [];
  let complete = true;
  for (const arm of variable.arms) {
    const low = Math.max(arm.low, part.low[task]);
    const high = Math.min(arm.high, part.high[task]);
    if (low > high) continue;
    const loss = (count) => lossOf(variable, top, arm, answer.prices, count);
    // an arm's least loss is at its own best answer; from there it only grows
    const best = arm === top.arm ? top.count : answerArm(variable, arm, low, high, dot(answer.prices, arm.use));
    if (loss(best) > width) continue;
    let from = Math.min(Math.max(centre, low), high);
    if (loss(from) > width) from = best;
    picks.push({ count: from, loss: loss(from) });
    for (const way of [arm.lot, -arm.lot]) {
      for (let count = from + way, steps = 1; count >= low && count <= high; count += way, steps++) {
        const lost = loss(count);
        if (lost > width) break;
        if (steps > widest) {
          complete = false;
          break;
        }
        picks.push({ count, loss: lost });
      }
    }
  }
  picks.sort((a, b) => a.count - b.count);
  for (const pick of picks) {
    pick.use = takes(variable, pick.count);
    pick.value = rise(variable, centre, pick.count - centre);
  }
  return { task, picks, whole: complete };
}

/** Of each task: the least loss of any count but its best, so that most need no closer look. */
function secondLosses(model, part, answer) {
  return answer.best.slice(0, model.tasks).map((top, i) => {
    const variable = model.variables[i];
    let least = Infinity;
    for (const arm of variable.arms) {
      const low = Math.max(arm.low, part.low[i]);
      const high = Math.min(arm.high, part.high[i]);
      if (low > high) continue;
      let near = [top.count - arm.lot, top.count + arm.lot];
      if (arm !== top.arm) near = [answerArm(variable, arm, low, high, dot(answer.prices, arm.use))];
      for (const count of near) {
        if (count < low || count > high) continue;
        least = Math.min(least, lossOf(variable, top, arm, answer.prices, count));
      }
    }
    return least;
  });
}

/**
 * Put together all plans of a region within `width` of its bound.
 *
 * Gives the plan of most worth; or, with `enough`, the first in task order that is worth so much.
 * With a `core` only these tasks vary and the others keep the count of the centre.
 * `whole` is whether nothing was left out, `work` how many partial plans were looked at.
 */
function listPlans(model, part, answer, centre, width, options = {}) {
  const { core, widest = WIDEST, longest = LONGEST_LIST, enough = null } = options;
  const second = options.second ?? secondLosses(model, part, answer);
  const varied = core ?? second.flatMap((loss, i) => (loss <= width ? [i] : []));
  const result = { counts: null, whole: !core, work: 0 };
  if (varied.length > MOST_VARIED) return { ...result, whole: false };
  const counts = core ? centre.slice() : choiceOf(model, answer);
  const windows = [];
  let wide = 0;
  for (const task of varied) {
    const window = windowOf(model, part, answer, task, centre[task], width, Math.min(widest, longest / 8));
    result.whole &&= window.whole;
    windows.push(window);
    wide += window.picks.length;
    if (wide > longest / 8) return { ...result, whole: false };
  }
  const rest = [none(model)]; // what the windows after each one take
  for (const { picks } of windows.slice(1).reverse()) rest.unshift(addSpan(rest[0], picks));
  let states = [startPlan(model, counts, centre, new Set(varied))];
  for (const [at, { picks }] of windows.entries()) {
    const work = states.length * picks.length;
    if (work > longest || result.work > 3 * longest) return { ...result, whole: false };
    result.work += work;
    const after = extend(model, answer, states, picks, rest[at], width);
    states = enough === null ? keepBest(after, model.plain) : sift(after, 0);
  }
  return { ...result, counts: pickPlan(model, answer, centre, windows, counts, states, width, enough) };
}

const none = (model) => ({ least: model.limits.map(() => 0), most: model.limits.map(() => 0) });

/** The least and the most that windows take, with those of one more. */
const addSpan = ({ least, most }, picks) => ({
  least: least.map((each, row) => each + Math.min(...picks.map(({ use }) => use[row]))),
  most: most.map((each, row) => each + Math.max(...picks.map(({ use }) => use[row]))),
});

/** The partial plan to begin with: all tasks that do not vary. */
function startPlan(model, counts, centre, varied) {
  const used = model.limits.map(() => 0);
  let value = 0; // worth against the centre
  for (let i = 0; i < model.tasks; i++) {
    if (varied.has(i)) continue;
    takes(model.variables[i], counts[i]).forEach((each, row) => (used[row] += each));
    value += rise(model.variables[i], centre[i], counts[i] - centre[i]);
  }
  return { used, value, loss: 0, before: null, count: 0 };
}

/** Every partial plan with every count of a window, less what can no longer fit or come near the bound. */
function extend(model, answer, states, picks, { least, most }, width) {
  const after = [];
  for (const state of states) {
    // more of an earlier task comes first, so the order in which plans are made is task order
    for (let p = picks.length - 1; p >= 0; p--) {
      const { loss, use, value, count } = picks[p];
      let lost = state.loss + loss; // with what can no longer be spent
      let good = lost <= width;
      for (let row = 0; good && row < model.plain; row++) {
        const slack = model.limits[row] - state.used[row] - use[row];
        good = slack >= least[row];
        if (slack > most[row]) lost += answer.prices[row] * (slack - most[row]);
      }
      if (!good || lost > width) continue;
      const used = state.used.map((each, row) => each + use[row]);
      after.push({ used, value: state.value + value, loss: state.loss + loss, before: state, count });
    }
  }
  return after;
}

/** Of partial plans those that no other beats, with as much worth for no more of money or of the first cap. */
function keepBest(states, plain) {
  states.sort((a, b) => a.used[0] - b.used[0] || b.value - a.value);
  return sift(states, plain > 1 ? 1 : 0);
}

/** Those that none before them beats, with as much worth for no more in a column and the same in later ones. */
function sift(states, column) {
  const kept = [];
  const fronts = new Map(); // by what is used in later columns: states that rise in use and in worth
  for (const state of states) {
    const later = state.used.length > column + 1;
    const key = later ? state.used.slice(column + 1).join() : "";
    if (!fronts.has(key)) fronts.set(key, []);
    const front = fronts.get(key);
    let at = 0;
    let end = front.length;
    while (at < end) {
      const middle = (at + end) >> 1;
      if (front[middle].used[column] <= state.used[column]) at = middle + 1;
      else end = middle;
    }
    if (at > 0 && front[at - 1].value >= state.value) continue;
    let stop = at;
    while (stop < front.length && front[stop].value <= state.value) stop++;
    front.splice(at, stop - at, state);
    kept.push(state);
  }
  return kept;
}

/** The best of complete plans, or the first that is worth enough: its counts. */
function pickPlan(model, answer, centre, windows, counts, states, width, enough) {
  const base = enough === null ? 0 : worthOf(model, centre);
  const all = complete(model, centre);
  let top = null;
  for (const state of states) {
    let { value, loss } = state;
    let good = true;
    for (let row = 0; row < model.plain; row++) {
      const slack = model.limits[row] - state.used[row];
      good &&= slack >= 0;
      loss += answer.prices[row] * slack;
    }
    for (let link = 0; link < model.links; link++) {
      const [v, row] = [model.tasks + link, model.plain + link];
      const variable = model.variables[v];
      const given = model.limits[row] - state.used[row];
      const taken = Math.min(given, variable.arms[0].high);
      value += rise(variable, all[v], taken - all[v]);
      loss += lossOf(variable, answer.best[v], variable.arms[0], answer.prices, taken);
      loss += answer.prices[row] * (given - taken);
    }
    if (!good || loss > width) continue;
    if (enough !== null) {
      if (base + value < enough) continue;
      top = { state };
      break;
    }
    if (top === null || value > top.value) top = { state, value };
  }
  if (top === null) return null;
  const found = counts.slice();
  let { state } = top;
  for (let at = windows.length - 1; at >= 0; at--, state = state.before) found[windows[at].task] = state.count;
  return found;
}

// ---- The search ----------------------------------------------------------------------------------------

/** The counts of greatest worth in a region; with a `target`, any that reach it. */
function maximise(model, root, target = Infinity) {
  const [first, feasible] = findPrices(model, root);
  const scale = Math.max(Math.abs(first.bound), 1e-200);
  const best = { counts: null, worth: -Infinity, work: 0, unseen: -Infinity };
  best.noise = NOISE * scale * (2 + model.variables.length);
  best.goal = () => (target === Infinity ? best.worth : target);
  best.offer = (counts) => {
    const worth = worthOf(model, counts);
    if (worth > best.worth && fits(model, counts)) Object.assign(best, { counts, worth });
  };
  best.offer(root.low.slice(0, model.tasks));
  best.offer(fill(model, root, first, feasible));
  const queue = [{ bound: first.bound, part: root, answer: first }];
  const [mostRegions, mostWork] = target === Infinity ? [MOST_REGIONS, MOST_WORK] : [30, MOST_WORK / 30];
  for (let regions = 0; queue.length && regions < mostRegions && best.work < mostWork; regions++) {
    queue.sort((a, b) => a.bound - b.bound);
    const gap = queue.at(-1).bound - best.goal();
    if (gap < -best.noise || best.worth >= target) break;
    if (regions && target === Infinity && gap <= SETTLED * best.worth) break;
    let { part, answer } = queue.pop();
    if (regions) {
      const [near, inside] = findPrices(model, part, answer.prices);
      if (near.bound < best.goal() - best.noise) continue;
      answer = near;
      best.offer(fill(model, part, near, inside));
    }
    if (exhaust(model, part, answer, best)) continue;
    for (const half of split(model, part, answer, best)) {
      if (!fits(model, half.low)) continue;
      const after = respond(model, half, answer.prices);
      const bound = Math.min(after.bound, answer.bound);
      if (bound >= best.goal() - best.noise) queue.push({ bound, part: half, answer: after });
    }
  }
  const left = queue.reduce((most, { bound }) => Math.max(most, bound), best.unseen);
  return { ...best, answer: first, gap: Math.max(0, left - best.worth) };
}

const inside = (part, counts) => counts.map((count, i) => Math.min(Math.max(count, part.low[i]), part.high[i]));

/** Look for the best plan of a region; true if nothing in it needs another look. */
function exhaust(model, part, answer, best) {
  const second = secondLosses(model, part, answer);
  const list = (width, options) => {
    const found = listPlans(model, part, answer, inside(part, best.counts), width, { ...options, second });
    best.work += found.work;
    if (found.counts) best.offer(found.counts);
    return found;
  };
  // change a few counts at a time, those that lose least by it: often enough to come near the bound
  const improve = (widest) => {
    const order = second.map((_, i) => i).sort((a, b) => second[a] - second[b]);
    for (let from = 0; from < MOST_TRIED; from += MOST_TOGETHER) {
      const gap = answer.bound - best.worth;
      const core = order.slice(from, from + MOST_TOGETHER).filter((i) => second[i] <= gap);
      if (!core.length || gap <= (from ? SETTLED * answer.bound : best.noise)) break;
      list(gap, { core: core.sort((a, b) => a - b), widest });
    }
  };
  improve(2);
  let width = Math.max((answer.bound - best.worth) / 4096, best.noise);
  for (;;) {
    const gap = answer.bound - best.worth;
    if (gap <= best.noise || best.worth >= best.goal() + best.noise) return true;
    const settled = gap <= SETTLED * answer.bound;
    const found = list(width, { longest: settled ? SHORT_LIST : LONGEST_LIST });
    if (!found.whole) {
      if (!settled) improve(8);
      if (answer.bound - best.worth > SETTLED * answer.bound) return false;
      best.unseen = Math.max(best.unseen, answer.bound);
      return true;
    }
    // all plans within `width` were seen: the best of them is the best of all
    if (answer.bound - best.worth <= width || width >= answer.bound - best.goal() + best.noise) return true;
    width = Math.min(width * 4, answer.bound - Math.min(best.goal(), best.worth) + 2 * best.noise);
  }
}

/** Two halves of a region: between arms of which a task would take either, else through its widest window. */
function split(model, part, answer, best) {
  const width = Math.max(answer.bound - best.worth, best.noise);
  const second = secondLosses(model, part, answer);
  let top = null;
  for (let i = 0, seen = 0; i < model.tasks && seen < 20; i++) {
    if (part.low[i] >= part.high[i] || second[i] > width) continue;
    seen++;
    const { picks } = windowOf(model, part, answer, i, inside(part, best.counts)[i], width, WIDEST);
    const [first, last] = [picks[0].count, picks.at(-1).count];
    const { arms } = model.variables[i];
    const borders = arms.filter(({ low }) => first < low && low <= last).map(({ low }) => low);
    const size = (last - first) / arms[0].lot + (borders.length ? 1e18 : 0);
    const middle = picks[Math.floor(picks.length / 2)].count;
    const cut = borders.at(-1) ?? Math.max(middle, part.low[i] + arms[0].lot);
    if (top === null || size > top.size) top = { task: i, cut, size };
  }
  if (top === null) return [];
  const [high, low] = [part.high.slice(), part.low.slice()];
  high[top.task] = top.cut - model.variables[top.task].arms[0].lot;
  low[top.task] = top.cut;
  return [{ low: part.low, high }, { low, high: part.high }];
}

// ---- Ties: least money, then task order -----------------------------------------------------------------

const within = (model, money) => ({ ...model, limits: [money, ...model.limits.slice(1)] });

/** Of all plans that are as good as the best, the first; `settled` is false where they are too many to tell. */
function settleTies(model, root, solution) {
  const enough = solution.worth * (1 - EQUAL);
  const cheapest = saveMoney(model, root, solution, enough);
  const less = within(model, cheapest.money);
  const same = cheapest.money === model.limits[0];
  const [answer] = same ? [solution.answer] : findPrices(less, root);
  const width = Math.max(answer.bound - enough, 0) + solution.noise;
  const found = listPlans(less, root, answer, cheapest.counts, width, { enough, longest: SHORT_LIST });
  const settled = found.whole && cheapest.settled && solution.gap <= solution.noise;
  return { counts: found.counts ?? cheapest.counts, settled };
}

/** The least money for which a plan is worth enough: halving, between a bound and the best plan so far. */
function saveMoney(model, root, solution, enough) {
  let counts = solution.counts;
  let high = usedBy(model, counts)[0];
  let low = Math.max(0, leastMoney(model, solution.answer, enough, solution.noise));
  let settled = true;
  if (low < high) {
    // prices of money at which what is bought is only just worth enough
    const [, ...others] = solution.answer.prices;
    const top = Math.log(highestPrices(model, root)[0] || 1);
    let [cheap, dear] = [top - 140, top];
    for (let turn = 0; turn < 60; turn++) {
      const middle = (cheap + dear) / 2;
      const answer = respond(model, root, [Math.exp(middle), ...others]);
      const trial = choiceOf(model, answer);
      low = Math.max(low, leastMoney(model, answer, enough, solution.noise));
      const good = worthOf(model, trial) >= enough;
      const money = usedBy(model, trial)[0];
      if (good && money < high && fits(model, trial)) [counts, high] = [trial, money];
      if (good) cheap = middle;
      else dear = middle;
      if (low >= high) break;
    }
  }
  for (let step = 1; low < high; ) {
    const money = Math.max(high - step, low);
    const trial = maximise(within(model, money), root, enough);
    if (trial.worth >= enough) {
      [counts, high] = [trial.counts, usedBy(model, trial.counts)[0]];
      step *= 2;
    } else {
      settled &&= trial.worth + trial.gap < enough;
      low = money + 1;
      step = Math.max(1, Math.floor((high - low) / 2));
    }
  }
  return { counts, money: high, settled };
}

/** No plan of less money than this is worth enough, by one answer to prices. */
function leastMoney(model, answer, enough, noise) {
  const [price] = answer.prices;
  if (!(price > 0)) return 0;
  return Math.ceil(model.limits[0] - (answer.bound - enough + noise) / price);
}

// ---- What the page asks for ----------------------------------------------------------------------------

/** How many labels each task gets from a plan, implied ones included where they count. */
function labelsOf(problem, counts) {
  if (!problem.count_implied) return counts;
  return problem.tasks.map((task, i) => {
    const implied = problem.tasks.map((other, j) => (other.implies.includes(task.name) ? counts[j] : 0));
    const more = implied.reduce((a, b) => a + b, 0);
    return more ? Math.min(counts[i] + more, Math.max(task.pool ?? Infinity, counts[i])) : counts[i];
  });
}

/** Each task's own gain from these counts, before weights. */
export function gainsOf(problem, counts, from = counts.map(() => 0)) {
  const [before, after] = [labelsOf(problem, from), labelsOf(problem, counts)];
  const mix = (term, plan) =>
    problem.tasks.reduce((sum, task, i) => sum + (term.of.shares[task.name] ?? 0) * plan[i], 0) * term.of.step;
  return problem.tasks.map((task, i) =>
    problem.gains[task.name].reduce((total, given) => {
      const term = prepare(given, 1);
      const [low, high] = given.of ? [mix(given, from), mix(given, counts)] : [before[i], after[i]];
      return total + (high >= low ? riseOf([term], low, high - low) : -riseOf([term], high, low - high));
    }, 0),
  );
}

/** The sum of weight x gain. What must be bought is added apart, so that it takes no digit of the rest. */
export function valueOf(problem, counts) {
  const floors = problem.tasks.map(floorOf);
  if (floors.every((floor) => floor === 0)) return weigh(problem, gainsOf(problem, counts));
  return weigh(problem, gainsOf(problem, floors)) + weigh(problem, gainsOf(problem, counts, floors));
}

const weigh = (problem, gains) =>
  gains.reduce((total, gain, i) => total + problem.tasks[i].weight * gain, 0);

/** Whether the rest of the money would pay for a lot that is worth something: then a cap is scarce. */
function isIdle(problem, counts, spent) {
  const floors = problem.tasks.map(floorOf);
  const tiny = 1e-12 * Math.abs(weigh(problem, gainsOf(problem, counts, floors)));
  return problem.tasks.some((task, i) => {
    const more = counts.slice();
    more[i] += task.lot;
    if (more[i] > ceilingOf(task)) return false;
    const left = problem.budget - spent - priceOf(task, more[i]) + priceOf(task, counts[i]);
    return left >= 0 && weigh(problem, gainsOf(problem, more, counts)) > tiny;
  });
}

/**
 * The exact plan of a problem: {feasible, clashes, counts, spent, unspent, value, gains, gap, exact,
 * settled, moneyWorth}. Money is in the problem's units; `counts` and `gains` are in task order.
 *
 * `gap` is by how much a better plan could be worth more: 0 when `exact`. `settled` is false where
 * more plans are equally good than could be looked through. `moneyWorth` is that of one more unit.
 */
export function solve(problem) {
  const clashes = findClashes(problem);
  if (clashes.length) return { feasible: false, clashes };
  const model = build(problem);
  const root = whole(model);
  const solution = maximise(model, root);
  const { counts: more, settled } = settleTies(model, root, solution);
  const counts = more.map((each, i) => each + model.variables[i].base);
  const spent = spendOf(problem, counts);
  const gap = solution.gap <= PROVED * Math.abs(solution.worth) ? 0 : solution.gap;
  const [price] = solution.answer.prices;
  const scarce = price * model.limits[0] > 1e-12 * solution.answer.bound;
  const idle = problem.caps.length > 0 && isIdle(problem, counts, spent);
  return {
    feasible: true,
    clashes,
    counts,
    spent,
    unspent: problem.budget - spent,
    value: valueOf(problem, counts),
    gains: gainsOf(problem, counts),
    gap,
    exact: gap === 0 && !(problem.inexact ?? []).length,
    settled,
    moneyWorth: scarce && !idle ? price : 0,
  };
}

/** The exact plan for each of some budgets, in units of money. */
export const frontier = (problem, budgets) =>
  budgets.map((budget) => ({ budget, ...solve({ ...problem, budget }) }));

/**
 * The problem with other weights, in task order.
 *
 * Where gains were estimated, harm that labels of one task do to others is taken off their own worth,
 * by the tasks' weights, since a curve that falls would not be concave (Estimates.mean_gains).
 */
export function reweigh(problem, weights) {
  const tasks = problem.tasks.map((task, i) => ({ ...task, weight: weights[i] }));
  if (!problem.pairs) return { ...problem, tasks };
  const { law, shapes } = problem.pairs;
  const worths = foldHarm(problem.pairs.worths, weights);
  const curve = (i, j) =>
    law === "power"
      ? { curve: "power", size: worths[i][j], have: tasks[j].have, exponent: shapes[j], ceiling: null }
      : { curve: "geometric", size: worths[i][j], keep: shapes[j] };
  const gains = {};
  for (const [i, task] of tasks.entries()) {
    const others = tasks.flatMap((other, j) =>
      j !== i && worths[i][j] > 0
        ? [{ ...curve(i, j), of: { shares: { [other.name]: 1 }, step: 1 } }]
        : [],
    );
    gains[task.name] = [curve(i, i), ...others];
  }
  return { ...problem, tasks, gains };
}

/** The same worth of each task's labels for all tasks together, with no cell below 0 off the diagonal. */
function foldHarm(worths, weights) {
  const folded = worths.map((row) => row.slice());
  for (const [j, weight] of weights.entries()) {
    const weigh = (column) =>
      weight > 0 ? column.reduce((sum, each, i) => sum + (i === j ? 0 : weights[i] * each), 0) / weight : 0;
    const column = folded.map((row) => row[j]);
    let own = column[j] + weigh(column.map((each) => Math.min(each, 0)));
    let help = column.map((each) => Math.max(each, 0));
    const total = weigh(help);
    if (own < 0 && help.some((each, i) => i !== j && each > 0)) {
      // what the own worth cannot bear comes off the help
      const left = Math.max(0, total + own);
      help = help.map((each) => (total > 0 ? each * (left / total) : 0));
      own = Math.min(0, total + own);
    }
    folded.forEach((row, i) => (row[j] = i === j ? own : help[i]));
  }
  return folded;
}
