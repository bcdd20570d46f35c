// dbos.mjs - three-step workflows a second with DBOS's TypeScript library, as `pawl bench processes --closed` runs processes of three steps.
//
//     node dbos.mjs URL COUNT CLIENTS
//
// The steps do nothing; each result is stored before the next step begins. CLIENTS loops start a workflow, wait for its end and start the
// next. Prints workflows per second. Run by dbos.sh, which installs the library.
import { DBOS } from "@dbos-inc/dbos-sdk";

const [url, count, clients] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

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

DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, systemDatabasePoolSize: 20, logLevel: "error", runAdminServer: false });
await DBOS.launch();
await all(Math.min(count, 200)); // warm up
const start = performance.now();
const done = await all(count);
console.log(Math.round(done / ((performance.now() - start) / 1000)));
await DBOS.shutdown();
process.exit(0);
