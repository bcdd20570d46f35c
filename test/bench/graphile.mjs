// graphile.mjs - for programs.py: creates graphile-worker's schema, or handles all jobs with its local queue.
//
//     DATABASE_URL=... node graphile.mjs migrate | handle COUNT CONCURRENCY
//
// Runs in the folder that has node_modules. handle: prints jobs a second, from the start of the runner to the last completion, and the
// processor time of this program for all of them.
import pg from "pg";
import { run, runMigrations } from "graphile-worker";

const connectionString = process.env.DATABASE_URL;
const silent = { scope: () => silent, log() {}, error: console.error, warn() {}, info() {}, debug() {} };

async function handle(count, concurrentJobs) {
    const pool = new pg.Pool({ connectionString, max: 25 });
    pool.on("error", console.error);
    pool.on("connect", (client) => client.on("error", console.error));
    let seen = 0, all;
    const ended = new Promise((resolve) => (all = resolve));
    const begin = process.hrtime.bigint(), cpu = process.cpuUsage();
    const runner = await run({
        pgPool: pool,
        logger: silent,
        taskList: { noop() { if (++seen === count) all(); } },
        preset: {
            worker: {
                concurrentJobs, maxPoolSize: 25, pollInterval: 2000, preparedStatements: true,
                localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0,
            },
        },
    });
    await ended;
    await runner.stop(); // the last completions are written here
    const seconds = Number(process.hrtime.bigint() - begin) / 1e9, used = process.cpuUsage(cpu);
    const { rows } = await pool.query("select count(*)::integer as left from graphile_worker._private_jobs");
    if (rows[0].left !== 0) throw new Error(`${rows[0].left} jobs are left`);
    await pool.end();
    console.log(JSON.stringify({ per_s: count / seconds, cpu_s: (used.user + used.system) / 1e6 }));
}

if (process.argv[2] === "migrate") await runMigrations({ connectionString, logger: silent });
else await handle(Number(process.argv[3]), Number(process.argv[4]));
