/*
 * bot_output.c - from the game's replies to messages.
 */
#include <string.h>

#include "app/bot_game_internal.h"
#include "telegram/markup.h"

/* Answers to presses are plain text. */
static const char *plain_of(const char *html, Arena *arena)
{
    static const char *const references[][2] = {
        {"&lt;",  "<"},
        {"&gt;",  ">"},
        {"&amp;", "&"}
    };
    Text text;

    if (!html)
        return NULL;
    text_init(&text, arena, TEXT_MAX_LINE);
    while (*html) {
        size_t i = 0;

        if (*html == '<' && strchr(html, '>')) {
            html = strchr(html, '>') + 1;
            continue;
        }
        while (i < COUNT(references) && strncmp(html, references[i][0], strlen(references[i][0])) != 0)
            i++;
        if (i < COUNT(references)) {
            text_append(&text, references[i][1]);
            html += strlen(references[i][0]);
        } else {
            text_append_char(&text, *html++);
        }
    }
    return telegram_shorten(text_string(&text), TELEGRAM_ANSWER_MAX, arena);
}

static const TelegramButton *buttons_of(const GameReply *reply, Arena *arena)
{
    TelegramButton *buttons = arena_array(arena, TelegramButton, reply->buttons_count + 1);

    for (int i = 0; i < reply->buttons_count; i++)
        buttons[i] = (TelegramButton){reply->buttons[i].text, reply->buttons[i].data, reply->buttons[i].ends_row};
    return buttons;
}

/* The answer to a match or an undo is sent before everything else. */
static bool is_first(const BotTurn *turn, const GameInput *input)
{
    return game_operation(input, turn->arena) != NULL;
}

static void reply_send(BotTurn *turn, const GameInput *input, const GameReply *reply)
{
    bool             is_press = input->kind == GAME_BUTTON;
    TelegramOutgoing item     = {.chat_id       = input->chat_id,
                                 .thread_id     = input->topic,
                                 .reply_to      = is_press ? 0 : input->message_id,
                                 .html          = reply->html,
                                 .buttons       = buttons_of(reply, turn->arena),
                                 .buttons_count = reply->buttons_count,
                                 .is_first      = is_first(turn, input),
                                 .reference     = reply->reference,
                                 .file          = reply->file,
                                 .file_size     = reply->file_size,
                                 .file_name     = reply->file_name};

    switch (reply->kind) {
    case GAME_SAY:
        item.method = TELEGRAM_SEND;
        break;
    case GAME_EDIT:
        item.method     = input->message_id ? TELEGRAM_EDIT : TELEGRAM_SEND;
        item.message_id = input->message_id;
        break;
    case GAME_EDIT_ABOUT:
        if (!reply->message_id)
            return;
        item.method     = TELEGRAM_EDIT;
        item.message_id = reply->message_id;
        item.reference  = NULL;
        item.is_first   = false; /* it confirms nothing: if it is refused, no new message is needed */
        break;
    case GAME_PHOTO:
        item.method = TELEGRAM_PHOTO;
        break;
    case GAME_DOCUMENT:
        item.method = TELEGRAM_DOCUMENT;
        break;
    case GAME_TOAST:
        item = (TelegramOutgoing){.method      = TELEGRAM_ANSWER,
                                  .callback_id = input->button_id,
                                  .html        = plain_of(reply->html, turn->arena),
                                  .is_alert    = reply->html && !reply->is_brief};
        break;
    }
    if (item.chat_id || item.method == TELEGRAM_ANSWER)
        bot_turn_send(turn, &item);
}

/* The answer takes the place of the message that showed progress. */
static void progress_end(BotTurn *turn, const GameInput *input, int first)
{
    if (!turn->progress || !turn->progress->is_shown || turn->outgoing_count == first)
        return;
    const TelegramOutgoing *last = &turn->outgoing[turn->outgoing_count - 1];

    if (turn->outgoing[first].method == TELEGRAM_SEND)
        turn->outgoing[first].replaces = turn->progress->message_id;
    else if (input->kind == GAME_BUTTON && input->chat_id &&
             last->html) /* which has changed the message with the button, too */
        bot_turn_send(turn, &(TelegramOutgoing){.method    = TELEGRAM_EDIT,
                                                .chat_id   = input->chat_id,
                                                .thread_id = input->topic,
                                                .html      = last->html,
                                                .is_first  = last->is_first,
                                                .replaces  = turn->progress->message_id});
}

void bot_output_send(BotTurn *turn, const GameInput *input, const GameOutput *output)
{
    int first = turn->outgoing_count;

    /* A press that got no answer shows progress until it expires. */
    if (input->kind == GAME_BUTTON && output->count == 0 && !output->is_ignored && input->button_id &&
        input->button_id[0])
        reply_send(turn, input, &(GameReply){.kind = GAME_TOAST});
    for (int i = 0; i < output->count; i++)
        reply_send(turn, input, &output->list[i]);
    progress_end(turn, input, first);
}
