// Times slider steps: node page_steps.mjs SOLVER FILE, with {problem, steps, warm} in the file.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { solve } = await import(pathToFileURL(process.argv[2]));
const { problem, steps, warm } = JSON.parse(readFileSync(process.argv[3], "utf8"));

/** One price or the budget changed by up to a tenth; others stay where earlier steps left them. */
function change(now, number) {
  const share = 0.9 + 0.2 * ((number * 0.6180339887) % 1);
  if (number % 2) return { ...now, budget: Math.round(problem.budget * share) };
  const at = (number * 37) % now.tasks.length;
  const tasks = now.tasks.slice();
  const [[, price]] = problem.tasks[at].prices;
  tasks[at] = { ...tasks[at], prices: [[0, Math.max(1, Math.round(price * share))]] };
  return { ...now, tasks };
}

let now = problem;
const times = [];
let exact = true;
for (let number = 0; number < warm + steps; number++) {
  now = change(now, number);
  const begun = performance.now();
  const cpu = process.cpuUsage();
  const plan = solve(now);
  const used = process.cpuUsage(cpu);
  const own = (used.user + used.system) / 1000;
  if (number >= warm) times.push({ passed: performance.now() - begun, own });
  exact &&= plan.exact && plan.spent <= now.budget;
}
process.stdout.write(JSON.stringify({ times, exact }));
