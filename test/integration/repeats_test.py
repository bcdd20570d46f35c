#!/usr/bin/env python3
"""repeats - what the same request answers a second time: wallets, commands, lock waits, and any POST under a key."""
import uuid

from bus_story import status, work
from pawl_test import Database, Pawl, main, test
from story import stop_clean


def new_key():
    return str(uuid.uuid4())


def is_replayed(answer):
    return answer.headers.get("idempotency-replayed") == "true"


@test
def a_wallet_opened_again_answers_its_present_state():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"owner": "ann", "floor": -50, "metadata": {"tier": 1}}
        first = pawl.http("POST", "/v1/wallets", body)
        again = pawl.http("POST", "/v1/wallets", body)
        assert (again.status, again.body) == (201, first.body) and is_replayed(again), again
        assert pawl.http("POST", "/v1/wallets/ann/topup", {"txn_id": new_key(), "amount": 70}).status == 201
        assert pawl.http("POST", "/v1/holds", {"txn_id": new_key(), "owner": "ann", "amount": 20}).status == 201
        again = pawl.http("POST", "/v1/wallets", body)
        assert again.status == 201 and is_replayed(again) and again.headers["pawl-balance"] == "70", again
        assert again.json == pawl.http("GET", "/v1/wallets/ann").json, again.body
        assert (again.json["balance"], again.json["held"], again.json["available"]) == (70, 20, 100), again.body
        assert again.json["created_at"] == first.json["created_at"], again.body
        stop_clean(pawl.server)


@test
def a_command_sent_again_answers_the_same_bytes_whatever_became_of_it():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"domain": "shop", "type": "charge", "payload": {"n": 1}, "command_id": new_key()}
        batch = {"batch_id": new_key(), "items": [{"domain": "shop", "type": "charge"}, {"domain": "shop", "type": "pay"}]}
        first, many = pawl.http("POST", "/v1/commands", body), pawl.http("POST", "/v1/commands/batch", batch)
        assert first.status == many.status == 201, (first, many)
        assert first.headers["pawl-status"] == "PENDING", first.headers
        work(pawl, "shop", "--noop")
        assert status(pawl, body["command_id"]) == "COMPLETED"
        again = pawl.http("POST", "/v1/commands", body)
        assert (again.status, again.body) == (201, first.body) and is_replayed(again), (again, first)
        assert again.headers["pawl-status"] == "COMPLETED", again.headers
        again = pawl.http("POST", "/v1/commands/batch", batch)
        assert (again.status, again.body) == (201, many.body) and is_replayed(again), (again, many)
        stop_clean(pawl.server)


main()
