// dbos.mjs - for programs.py: workflows of three steps a second with DBOS's TypeScript library, as library.c runs processes of three steps.
//
//     DATABASE_URL=... node dbos.mjs COUNT CLIENTS
//
// Runs in the folder that has node_modules. The steps do nothing; each result is stored before the next step begins. CLIENTS loops start a
// workflow, wait for its end and start the next. Prints workflows a second, and the processor time of this program for all of them.
import { DBOS } from "@dbos-inc/dbos-sdk";

const [count, clients] = process.argv.slice(2).map(Number);

const steps = DBOS.registerWorkflow(
  async () => {
    for (const name of ["first", "second", "third"]) await DBOS.runStep(async () => null, { name });
  },
  { name: "steps" },
);

async function client(runs) {
  for (let i = 0; i < runs; i++) await steps();
}

async function all(runs) {
  const share = Math.ceil(runs / clients);
  await Promise.all(Array.from({ length: clients }, () => client(share)));
  return share * clients;
}

DBOS.setConfig({ name: "bench", systemDatabaseUrl: process.env.DATABASE_URL, systemDatabasePoolSize: 20, logLevel: "error", runAdminServer: false });
await DBOS.launch();
await all(Math.min(count, 2 * clients)); // warm up
const start = performance.now(), cpu = process.cpuUsage();
const done = await all(count);
const seconds = (performance.now() - start) / 1000, used = process.cpuUsage(cpu);
console.log(JSON.stringify({ per_s: done / seconds, cpu_s: (used.user + used.system) / 1e6, count: done }));
await DBOS.shutdown();
process.exit(0);
