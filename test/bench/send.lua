-- send.lua - for wrk: each request is another command. Called by report.py.
--
--     PAWL_ADMIN_TOKEN=... wrk -t2 -c64 -d10s -s test/bench/send.lua http://127.0.0.1:8080 -- [ids]
--
-- With "ids" the client names each command by an id of its own that grows with time, as UUIDs of version 7 do; without, the
-- server does. Everything that is not 201 is counted, and printed on a line of its own.

local threads = {}

function setup(thread)
    thread:set("number", #threads + 1)
    table.insert(threads, thread)
end

function init(arguments)
    with_ids = arguments[1] == "ids"
    began_ms = os.time() * 1000
    sent, refused = 0, 0
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/json"
    wrk.headers["Authorization"] = "Bearer " .. os.getenv("PAWL_ADMIN_TOKEN")
end

local function id()
    local ms = began_ms + math.floor(sent / 10)
    return string.format("%08x-%04x-7%03x-8%03x-%012x", math.floor(ms / 65536), ms % 65536, sent % 4096, number, sent)
end

function request()
    sent = sent + 1
    local name = with_ids and string.format('"command_id":"%s",', id()) or ""
    return wrk.format(nil, "/v1/commands", nil,
        string.format('{%s"domain":"bench","type":"noop","payload":{"client":%d,"n":%d}}', name, number, sent))
end

function response(status)
    if status ~= 201 then refused = refused + 1 end
end

function done(summary, latency)
    local sum = 0
    for _, thread in ipairs(threads) do sum = sum + thread:get("refused") end
    print("Refused: " .. sum)
    for _, percent in ipairs({50, 90, 99}) do print(string.format("P%d: %.3f", percent, latency:percentile(percent) / 1000)) end
end
