-- transfer.lua - for wrk: each request moves money under a key of its own. Called by report.py.
--
--     PAWL_ADMIN_TOKEN=... wrk -t2 -c64 -d10s -s test/bench/transfer.lua http://127.0.0.1:8080 -- [any|hot|batch] [WALLETS]
--
-- any: between any two of the wallets w1 to wWALLETS; hot: all from w1; batch: 1000 transfers in one request. Everything that is
-- not answered with success is counted, and printed on a line of its own.

local threads = {}

function setup(thread)
    thread:set("number", #threads + 1)
    table.insert(threads, thread)
end

function init(arguments)
    mode = arguments[1] or "any"
    wallets = tonumber(arguments[2] or "1000")
    began_ms = os.time() * 1000
    sent, refused = 0, 0
    math.randomseed(number)
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/json"
    wrk.headers["Authorization"] = "Bearer " .. os.getenv("PAWL_ADMIN_TOKEN")
end

-- As UUIDs of version 7 do, it grows with time.
local function id()
    sent = sent + 1
    local ms = began_ms + math.floor(sent / 10)
    return string.format("%08x-%04x-7%03x-8%03x-%012x", math.floor(ms / 65536), ms % 65536, sent % 4096, number, sent)
end

local function transfer()
    local from = mode == "hot" and 1 or math.random(wallets)
    local to = (from + math.random(wallets - 1) - 1) % wallets + 1
    return string.format('{"txn_id":"%s","from":"w%d","to":"w%d","amount":1}', id(), from, to)
end

function request()
    if mode ~= "batch" then return wrk.format(nil, "/v1/transfers", nil, transfer()) end
    local items = {}
    for i = 1, 1000 do items[i] = transfer() end
    return wrk.format(nil, "/v1/transfers/batch", nil, '{"items":[' .. table.concat(items, ",") .. "]}")
end

function response(status)
    if status ~= (mode == "batch" and 200 or 201) then refused = refused + 1 end
end

function done(summary, latency)
    local sum = 0
    for _, thread in ipairs(threads) do sum = sum + thread:get("refused") end
    print("Refused: " .. sum)
    for _, percent in ipairs({50, 90, 99}) do print(string.format("P%d: %.3f", percent, latency:percentile(percent) / 1000)) end
end
