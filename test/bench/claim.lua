-- claim.lua - for wrk: claims commands of a domain and settles them as complete, LIMIT in each request. Called by report.py.
--
--     PAWL_ADMIN_TOKEN=... wrk -t2 -c64 -d10s -s test/bench/claim.lua http://127.0.0.1:8080 -- DOMAIN LIMIT
--
-- Any connection settles what any connection of its thread has claimed. Prints how many commands were settled, and how many requests were refused;
-- a claim that finds nothing counts as refused: there were not enough commands.

local threads = {}

function setup(thread)
    table.insert(threads, thread)
end

function init(arguments)
    local domain, limit = arguments[1], tonumber(arguments[2])
    claims, settled, refused = {}, 0, 0
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/json"
    wrk.headers["Authorization"] = "Bearer " .. os.getenv("PAWL_ADMIN_TOKEN")
    settle_path = "/v1/domains/" .. domain .. "/settle"
    claim = wrk.format(nil, "/v1/domains/" .. domain .. "/claim", nil, string.format('{"limit":%d,"lease_s":60}', limit))
end

function request()
    local items = table.remove(claims)
    if not items then return claim end
    return wrk.format(nil, settle_path, nil, '{"items":[' .. items .. "]}")
end

local function settle_items(body)
    local items = {}
    for id, lease in body:gmatch('"command_id":"([^"]+)".-"lease":(%d+)') do
        table.insert(items, string.format('{"command_id":"%s","lease":%s,"outcome":"complete"}', id, lease))
    end
    return items
end

function response(status, headers, body)
    local _, done = body:gsub('"settled":true', "")
    settled = settled + done
    if done > 0 then return end
    local items = settle_items(body)
    if status ~= 200 or #items == 0 then refused = refused + 1 else table.insert(claims, table.concat(items, ",")) end
end

function done(summary, latency)
    local sum, failed = 0, 0
    for _, thread in ipairs(threads) do
        sum = sum + thread:get("settled")
        failed = failed + thread:get("refused")
    end
    print("Settled: " .. sum)
    print("Refused: " .. failed)
    print("Seconds: " .. summary.duration / 1e6)
    for _, percent in ipairs({50, 90, 99}) do print(string.format("P%d: %.3f", percent, latency:percentile(percent) / 1000)) end
end
