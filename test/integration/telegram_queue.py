"""telegram_queue - messages of a bot, as its tests queue them."""
import json


def put(db, api, chat, texts, kind="send", key="t", **more):
    """Queue messages as an application does."""
    values = ", ".join(f"(md5('{key}' || {chat} || {n})::uuid, {chat}::bigint, '{kind}', '{json.dumps({'chat_id': chat, 'text': text, **more})}'::jsonb)"
                       for n, text in enumerate(texts))
    return int(db.value(f"select pawl.telegram_put({api.bot_id}, array_agg(v.id), array_agg(v.chat), array_agg(v.kind), array_agg(v.payload), 1000000) "
                        f"from (values {values}) v (id, chat, kind, payload)"))
