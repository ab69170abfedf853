// Solves a list of problems: node solve_cases.mjs FILE
import { readFileSync } from "node:fs";
import { frontier, reweigh, solve } from "./planner.js";

const cases = JSON.parse(readFileSync(process.argv[2], "utf8"));
const answers = cases.map(({ problem, budgets, weights }) => ({
  plan: solve(problem),
  again: solve(JSON.parse(JSON.stringify(problem))),
  frontier: budgets ? frontier(problem, budgets) : null,
  reweighed: weights ? reweigh(problem, weights) : null,
}));
process.stdout.write(JSON.stringify(answers));
