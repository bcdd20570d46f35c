-- look.lua - for wrk: each request asks for another of the wallets w1 to wWALLETS. Called by report.py.
--
--     PAWL_ADMIN_TOKEN=... wrk -t2 -c64 -d10s -s test/bench/look.lua http://127.0.0.1:8080 -- [WALLETS]

function init(arguments)
    wallets = tonumber(arguments[1] or "1000")
    wrk.headers["Authorization"] = "Bearer " .. os.getenv("PAWL_ADMIN_TOKEN")
end

function request()
    return wrk.format("GET", "/v1/wallets/w" .. math.random(wallets))
end
