"""bot_api - a Bot API server for tests, on the standard library: what the bot sees is what api.telegram.org would say.

    from bot_api import BotApi

    with BotApi() as api:                                      # api.root is PAWL_TELEGRAM_API_ROOT, api.token the token
        group = api.group(-1001, "Chess", forum=True)          # or api.private(user)
        ann = api.user(11, "Ann", username="ann")
        api.member(group, ann, "administrator")                # for getChatMember
        sent = api.message(group, ann, "/match @ann @bob 3 1", topic=7)   # an update; entities are found, in UTF-16
        api.callback(ann, api.sent(group)[-1], "undo:1")       # presses a button
        wait_until(lambda: api.sent(group))                    # messages that the bot sent, with edits applied

getUpdates has offsets, limits, long polls, and 409 for the older of two pollers and while a webhook is set. setWebhook delivers with the
secret, in order by chat, until it gets a 2xx. Updates keep their ids until they are confirmed: api.again(update) puts one in once more.

Failures
    api.answer("sendMessage", status=500, body="oops", times=2)          the next calls get this, as it is
    api.answer("sendMessage", status=429, retry_after=2, header=None)    as the Bot API says it; retry_after=None: without parameters
    api.rate(chat_s=1.0)       one message per chat and second, 429 with the time that is left for what comes earlier
    api.limited[-1001] = 3600  all messages to this chat get a 429
    api.delay("sendMessage", 5)           the answer comes late
    api.migrate(group, -1002)  the group becomes a supergroup: service messages, and 400 with migrate_to_chat_id for the old id
    api.drop_results = True    answers have result null, as some emulators do

All calls are in api.calls: (time, method, parameters, files, via). Times are time.monotonic(). An instance whose API root is
api.root + "/via/NAME" has its name in `via`.
"""
import collections
import email.parser
import email.policy
import html.parser
import http.client
import http.server
import json
import re
import threading
import time
import urllib.parse

Call = collections.namedtuple("Call", "at method parameters files via", defaults=("",))
POLL_S_MAX = 50


def units(text):
    """The length in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def find_entities(text):
    """Commands and mentions, as clients mark them."""
    found = []
    for pattern, kind in ((r"(?<!\S)/[A-Za-z0-9_]{1,64}(@\w+)?", "bot_command"), (r"(?<![\w@])@\w{3,32}", "mention")):
        for match in re.finditer(pattern, text):
            if kind == "mention" and any(e["type"] == "bot_command" and e["offset"] <= units(text[:match.start()])
                                         < e["offset"] + e["length"] for e in found):
                continue
            found.append({"type": kind, "offset": units(text[:match.start()]), "length": units(match.group())})
    return sorted(found, key=lambda entity: entity["offset"])


class Html(html.parser.HTMLParser):
    """What a text in HTML shows; ValueError where the Bot API says that it cannot parse entities."""
    TAGS = {"b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "span", "tg-spoiler", "a", "code", "pre", "blockquote"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.shown, self.open = [], []
        self.feed(text)
        self.close()
        if self.open or "<" in re.sub(r"</?[a-z-]+(\s[^<>]*)?>", "", text):
            raise ValueError(f"unclosed or unescaped tag in {text!r}")
        self.text = "".join(self.shown)

    def handle_starttag(self, tag, attrs):
        if tag not in self.TAGS:
            raise ValueError(f'unsupported start tag "{tag}"')
        self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise ValueError(f'unexpected end tag "{tag}"')

    def handle_data(self, data):
        self.shown.append(data)


class Refusal(Exception):
    def __init__(self, status, description, **parameters):
        super().__init__(description)
        self.status, self.description, self.parameters = status, description, parameters


class BotApi:
    def __init__(self, token="424242:TEST-token_of-the-bot", username="pawl_test_bot"):
        self.token, self.username = token, username
        self.bot_id = int(token.split(":")[0])
        self.lock = threading.Condition()
        self.calls = []
        self.pending = []         # updates that are not confirmed
        self.update_id = 1000
        self.message_ids = collections.Counter()
        self.chats, self.members, self.moved = {}, {}, {}
        self.messages = collections.defaultdict(dict)  # chat -> message id -> message
        self.commands = {}        # (scope, language) -> list
        self.answers = collections.defaultdict(list)   # method -> answers to give instead
        self.delays = {}
        self.chat_s = None
        self.last_sent = {}
        self.limited = {}         # chat -> retry_after: all messages to it get a 429
        self.drop_results = False
        self.poll = None          # the poll under way
        self.webhook = None
        self.webhook_queues = {}
        self.webhook_statuses = []  # answers to deliveries
        self.conflicts = 0        # answers 409 to polls
        self.answered = {}        # callback id -> parameters
        self.callback_id = 0
        self.stopping = False

    # --- life ---

    def __enter__(self):
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                api.handle(self)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # a client that was killed

        self.server = Server(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        with self.lock:
            self.stopping = True
            self.lock.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def env(self, **more):
        """The environment of a `pawl serve` that is this bot."""
        return {"PAWL_TELEGRAM_TOKEN": self.token, "PAWL_TELEGRAM_API_ROOT": self.root, **more}

    # --- users and chats ---

    def user(self, number, first_name="User", username=None, **more):
        user = {"id": number, "is_bot": False, "first_name": first_name, **more}
        if username:
            user["username"] = username
        return user

    def group(self, number, title="Group", kind="supergroup", forum=False):
        chat = {"id": number, "type": kind, "title": title}
        if forum:
            chat["is_forum"] = True
        self.chats[number] = chat
        return chat

    def private(self, user):
        chat = {"id": user["id"], "type": "private", "first_name": user["first_name"]}
        self.chats[user["id"]] = chat
        return chat

    def member(self, chat, user, status="member"):
        """What getChatMember says; members who were never named are "left"."""
        self.members[chat["id"], user["id"]] = {"user": user, "status": status}

    # --- updates ---

    def update(self, **content):
        """Put an update of any kind in."""
        with self.lock:
            self.update_id += 1
            update = {"update_id": self.update_id, **content}
            self.queue(update)
        return update

    def again(self, update):
        """Deliver one once more, as after an answer that was lost."""
        with self.lock:
            self.queue(update)

    def queue(self, update):
        self.pending.append(update)
        if self.webhook:
            self.deliver(update)
        self.lock.notify_all()

    def content(self, chat, user, text=None, topic=None, reply_to=None, message_id=None, entities=None, **more):
        """A message as a dictionary, not an update."""
        if message_id is None:
            with self.lock:
                self.message_ids[chat["id"]] += 1
                message_id = self.message_ids[chat["id"]]
        message = {"message_id": message_id, "date": int(time.time()), "chat": chat}
        if user:
            message["from"] = user
        if text is not None:
            message["text"] = text
            found = find_entities(text) if entities is None else entities
            if found:
                message["entities"] = found
        if topic:
            message.update(message_thread_id=topic, is_topic_message=True)
        if reply_to:
            message["reply_to_message"] = {key: value for key, value in reply_to.items() if key != "reply_to_message"}
        return {**message, **more}

    def message(self, chat, user, text=None, **options):
        """A user writes: the update."""
        return self.update(message=self.content(chat, user, text, **options))

    def edit(self, update, text):
        """The user edits a message: another update with the same message id."""
        message = {**update["message"], "text": text, "entities": find_entities(text), "edit_date": int(time.time())}
        return self.update(edited_message=message)

    def callback(self, user, message, data, callback_id=None):
        """The user presses a button of a message that the bot sent."""
        self.callback_id += 1
        return self.update(callback_query={"id": callback_id or str(self.callback_id), "from": user, "chat_instance": "1",
                                           "message": message, "data": data})

    def member_change(self, chat, user, before, after, by=None, of_bot=False):
        self.members[chat["id"], user["id"]] = {"user": user, "status": after}
        return self.update(**{"my_chat_member" if of_bot else "chat_member": {
            "chat": chat, "from": by or user, "date": int(time.time()),
            "old_chat_member": {"user": user, "status": before}, "new_chat_member": {"user": user, "status": after}}})

    def migrate(self, group, number):
        """The group becomes the supergroup `number`; returns its chat."""
        chat = self.group(number, group.get("title", ""), "supergroup")
        with self.lock:
            self.moved[group["id"]] = number
        self.message(group, None, migrate_to_chat_id=number)
        self.message(chat, None, migrate_from_chat_id=group["id"])
        return chat

    def me(self):
        return {"id": self.bot_id, "is_bot": True, "first_name": "Pawl", "username": self.username}

    # --- what the bot did ---

    def sent(self, chat):
        """Messages that the bot has sent to a chat, in order, with edits applied."""
        with self.lock:
            return [m for _, m in sorted(self.messages[chat["id"]].items())]

    def texts(self, chat):
        return [message.get("text", message.get("caption")) for message in self.sent(chat)]

    def calls_of(self, *methods):
        with self.lock:
            return [call for call in self.calls if call.method in methods]

    # --- failures ---

    def answer(self, method, status=200, body=None, retry_after=None, header=None, description=None, times=1, result=True,
               chat=None):
        """The next calls of the method, or those of them that are for the chat, get this and do nothing."""
        headers = {}
        if body is None and status == 200:
            body = json.dumps({"ok": True, "result": result})
        elif body is None:
            answer = {"ok": False, "error_code": status, "description": description or f"Error {status}"}
            if retry_after is not None:
                answer["parameters"] = {"retry_after": retry_after}
            body = json.dumps(answer)
        if header is not None:
            headers["Retry-After"] = str(header)
        with self.lock:
            self.answers[method].extend([(chat, (status, body, headers))] * times)

    def rate(self, chat_s):
        self.chat_s = chat_s

    def delay(self, method, seconds):
        """Later calls are answered this much later; 0: at once again."""
        self.delays[method] = seconds

    # --- HTTP ---

    def handle(self, request):
        size = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(size)
        url = urllib.parse.urlsplit(request.path)
        match = re.fullmatch(r"(?:/via/(\w+))?/bot([^/]+)/(\w+)", url.path)
        if not match or match.group(2) != self.token:
            return self.reply(request, 401 if match else 404, {"ok": False, "error_code": 401 if match else 404,
                                                              "description": "Unauthorized" if match else "Not Found"})
        if "Idempotency-Key" in request.headers:  # the Bot API has none, and a gateway would take equal keys for one request
            return self.reply(request, 400, {"ok": False, "error_code": 400, "description": "Bad Request: Idempotency-Key"})
        parameters = dict(urllib.parse.parse_qsl(url.query))
        files = {}
        kind = request.headers.get("Content-Type", "")
        if kind.startswith("application/json") and body:
            parameters.update(json.loads(body))
        elif kind.startswith("multipart/"):
            self.multipart(kind, body, parameters, files)
        elif kind.startswith("application/x-www-form-urlencoded"):
            parameters.update(urllib.parse.parse_qsl(body.decode()))
        for name in ("allowed_updates", "reply_parameters", "reply_markup", "commands", "scope"):
            if isinstance(parameters.get(name), str):
                parameters[name] = json.loads(parameters[name])
        method = match.group(3)
        with self.lock:
            self.calls.append(Call(time.monotonic(), method, parameters, files, match.group(1) or ""))
            instead = self.answer_of(method, parameters.get("chat_id"))
        if self.delays.get(method):
            time.sleep(self.delays[method])
        if instead:
            return self.reply(request, *instead)
        try:
            run = getattr(self, "do_" + method.lower(), None)
            if not run:
                raise Refusal(404, "Not Found: method not found")
            result = run(parameters, files)
            self.reply(request, 200, {"ok": True, "result": None if self.drop_results and method != "getUpdates" else result})
        except Refusal as refusal:
            answer = {"ok": False, "error_code": refusal.status, "description": refusal.description}
            headers = {}
            if refusal.parameters:
                answer["parameters"] = refusal.parameters
            if "retry_after" in refusal.parameters:
                headers["Retry-After"] = str(refusal.parameters["retry_after"])
            self.reply(request, refusal.status, answer, headers)

    def answer_of(self, method, chat_id):
        for number, (chat, answer) in enumerate(self.answers[method]):
            if chat is None or chat == chat_id:
                del self.answers[method][number]
                return answer
        return None

    @staticmethod
    def multipart(kind, body, parameters, files):
        parser = email.parser.BytesParser(policy=email.policy.HTTP)
        for part in parser.parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body).iter_parts():
            name = part.get_param("name", header="content-disposition")
            content = part.get_payload(decode=True)
            if part.get_filename():
                files[name] = {"name": part.get_filename(), "type": part.get_content_type(), "bytes": content}
            else:
                parameters[name] = content.decode()

    @staticmethod
    def reply(request, status, body, headers=None):
        raw = (body if isinstance(body, str) else json.dumps(body)).encode()
        try:
            request.send_response(status)
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(raw)))
            for name, value in (headers or {}).items():
                request.send_header(name, value)
            request.end_headers()
            request.wfile.write(raw)
        except OSError:
            pass  # the client has gone

    # --- methods ---

    def do_getme(self, _parameters, _files):
        return {**self.me(), "can_join_groups": True, "can_read_all_group_messages": False}

    def do_getupdates(self, parameters, _files):
        offset, limit = int(parameters.get("offset", 0)), int(parameters.get("limit", 100))
        until = time.monotonic() + min(int(parameters.get("timeout", 0)), POLL_S_MAX)
        mine = object()
        with self.lock:
            if self.webhook:
                self.conflicts += 1
                raise Refusal(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
            self.poll = mine
            self.lock.notify_all()
            if offset > 0:
                self.pending = [update for update in self.pending if update["update_id"] >= offset]
            while True:
                if self.poll is not mine:
                    self.conflicts += 1
                    raise Refusal(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
                left = until - time.monotonic()
                if self.pending or left <= 0 or self.stopping:
                    self.poll = None
                    return self.pending[:limit]
                self.lock.wait(left)

    def do_setwebhook(self, parameters, _files):
        with self.lock:
            if parameters.get("drop_pending_updates"):
                self.pending = []
            self.webhook = dict(parameters) if parameters.get("url") else None
            self.poll = None
            self.lock.notify_all()
            for update in self.pending if self.webhook else []:
                self.deliver(update)
        return True

    def do_deletewebhook(self, parameters, _files):
        with self.lock:
            if parameters.get("drop_pending_updates"):
                self.pending = []
            self.webhook = None
        return True

    def do_getwebhookinfo(self, _parameters, _files):
        with self.lock:
            return {"url": (self.webhook or {}).get("url", ""), "pending_update_count": len(self.pending)}

    def deliver(self, update):
        """In order by chat: one thread for each chat that has updates."""
        content = next((value for key, value in update.items() if key != "update_id"), {})
        chat = (content.get("chat") or content.get("message", {}).get("chat") or {}).get("id", 0)
        queue = self.webhook_queues.setdefault(chat, [])
        queue.append(update)
        if len(queue) == 1:
            threading.Thread(target=self.deliver_all, args=(chat, queue), daemon=True).start()

    def deliver_all(self, chat, queue):
        pause = 0.1
        while not self.stopping:
            with self.lock:
                if not queue or not self.webhook:
                    self.webhook_queues.pop(chat, None)
                    return
                update, hook = queue[0], self.webhook
            status = self.post(hook["url"], update, hook.get("secret_token"))
            self.webhook_statuses.append(status)
            if status // 100 == 2:
                with self.lock:
                    queue.pop(0)
                    if update in self.pending:
                        self.pending.remove(update)
                pause = 0.1
            else:
                time.sleep(pause)
                pause = min(pause * 2, 2)

    @staticmethod
    def post(url, update, secret=None, timeout=180):
        """An update to a webhook: the status, 0 when nothing answered."""
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
        headers = {"Content-Type": "application/json"}
        if secret is not None:
            headers["X-Telegram-Bot-Api-Secret-Token"] = secret
        try:
            connection.request("POST", parts.path, json.dumps(update), headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except OSError:
            return 0
        finally:
            connection.close()

    def chat_of(self, parameters):
        """Call with the lock held. Refuses as the server does."""
        number = int(parameters["chat_id"])
        if number in self.moved:
            raise Refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=self.moved[number])
        if number not in self.chats:
            raise Refusal(400, "Bad Request: chat not found")
        if self.members.get((number, self.bot_id), {}).get("status") in ("left", "kicked"):
            raise Refusal(403, "Forbidden: bot was kicked from the supergroup chat")
        if number in self.limited:
            raise Refusal(429, f"Too Many Requests: retry after {self.limited[number]}", retry_after=self.limited[number])
        if self.chat_s:
            now = time.monotonic()
            free = self.last_sent.get(number, 0) + self.chat_s
            if now < free:
                wait = int(free - now) + 1
                raise Refusal(429, f"Too Many Requests: retry after {wait}", retry_after=wait)
            self.last_sent[number] = now
        return self.chats[number]

    @staticmethod
    def shown(parameters, name, limit):
        text = parameters.get(name) or ""
        try:
            shown = Html(text).text if parameters.get("parse_mode") == "HTML" else text
        except ValueError as error:
            raise Refusal(400, f"Bad Request: can't parse entities: {error}") from None
        if name == "text" and not shown.strip():
            raise Refusal(400, "Bad Request: message text is empty")
        if units(shown) > limit:
            raise Refusal(400, f"Bad Request: message {name} is too long")
        return shown

    def put(self, parameters, **content):
        """A message of the bot. Call with the lock held."""
        chat = self.chat_of(parameters)
        if parameters.get("message_thread_id") and not chat.get("is_forum"):
            raise Refusal(400, "Bad Request: message thread not found")
        self.message_ids[chat["id"]] += 1
        message = {"message_id": self.message_ids[chat["id"]], "date": int(time.time()), "chat": chat, "from": self.me(), **content}
        if parameters.get("message_thread_id"):
            message.update(message_thread_id=int(parameters["message_thread_id"]), is_topic_message=True)
        if parameters.get("reply_markup"):
            message["reply_markup"] = parameters["reply_markup"]
        if parameters.get("reply_parameters"):
            message["reply_to_message"] = {"message_id": parameters["reply_parameters"]["message_id"], "chat": chat,
                                           "date": int(time.time())}
        self.messages[chat["id"]][message["message_id"]] = message
        return message

    def do_sendmessage(self, parameters, _files):
        text = self.shown(parameters, "text", 4096)
        with self.lock:
            return self.put(parameters, text=text)

    def do_sendphoto(self, parameters, files):
        if "photo" not in files:
            raise Refusal(400, "Bad Request: there is no photo in the request")
        caption = self.shown(parameters, "caption", 1024)
        with self.lock:
            return self.put(parameters, caption=caption, photo=[{"file_id": "p", "file_size": len(files["photo"]["bytes"])}])

    def do_senddocument(self, parameters, files):
        if "document" not in files:
            raise Refusal(400, "Bad Request: there is no document in the request")
        caption = self.shown(parameters, "caption", 1024)
        with self.lock:
            return self.put(parameters, caption=caption, document={"file_id": "d", "file_name": files["document"]["name"]})

    def do_editmessagetext(self, parameters, _files):
        text = self.shown(parameters, "text", 4096)
        with self.lock:
            chat = self.chat_of(parameters)
            message = self.messages[chat["id"]].get(int(parameters["message_id"]))
            if not message:
                raise Refusal(400, "Bad Request: message to edit not found")
            markup = parameters.get("reply_markup")
            if message.get("text") == text and message.get("reply_markup") == markup:
                raise Refusal(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same")
            message.update(text=text, edit_date=int(time.time()))
            message.pop("reply_markup", None)
            if markup:
                message["reply_markup"] = markup
            return message

    def do_answercallbackquery(self, parameters, _files):
        with self.lock:
            self.answered[parameters["callback_query_id"]] = parameters
        return True

    def do_getchatmember(self, parameters, _files):
        chat, user = int(parameters["chat_id"]), int(parameters["user_id"])
        return self.members.get((chat, user)) or {"user": self.user(user), "status": "left"}

    def do_getchatadministrators(self, parameters, _files):
        chat = int(parameters["chat_id"])
        return [m for (c, _), m in self.members.items() if c == chat and m["status"] in ("creator", "administrator")]

    def do_setmycommands(self, parameters, _files):
        scope = (parameters.get("scope") or {}).get("type", "default")
        with self.lock:
            self.commands[scope, parameters.get("language_code", "")] = parameters["commands"]
        return True
