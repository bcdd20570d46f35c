/*
 * bot_game.c - see bot_game.h. bot_input.c reads updates for the game of module rating, bot_prepare.c asks what it needs to know
 * before, and bot_output.c writes what it says as messages.
 */
#include "app/bot_game_internal.h"

#include <string.h>

#include "telegram/outbox.h"

/* ---- command menus ---- */

/* clang-format off */
#define MENU(scope, language, command, description) {scope, language, command, description},
#define GROUP_EN(command, kind, en, ru)   MENU("all_group_chats", "", command, en)
#define GROUP_RU(command, kind, en, ru)   MENU("all_group_chats", "ru", command, ru)
#define ADMIN_EN(command, kind, en, ru)   MENU("all_chat_administrators", "", command, en)
#define ADMIN_RU(command, kind, en, ru)   MENU("all_chat_administrators", "ru", command, ru)
const TelegramCommand bot_game_commands[] = {
    ASK_COMMANDS(GROUP_EN)
    ASK_COMMANDS(GROUP_RU)
    ASK_COMMANDS(ADMIN_EN) ASK_COMMANDS_OF_ADMINS(ADMIN_EN)
    ASK_COMMANDS(ADMIN_RU) ASK_COMMANDS_OF_ADMINS(ADMIN_RU)
    MENU("all_private_chats", "", "help", "what I can do")
    MENU("all_private_chats", "ru", "help", "что я умею")
    {0},
};
/* clang-format on */

/* ---- updates ---- */

static void progress_show(void *context, const char *html)
{
    const BotTurn *turn = context;
    GameInput      input;

    if (bot_input_read(turn, &input) && input.chat_id)
        bot_progress_show(turn->progress, &(TelegramOutgoing){.method    = TELEGRAM_SEND,
                                                              .chat_id   = input.chat_id,
                                                              .thread_id = input.topic,
                                                              .reply_to  = input.message_id,
                                                              .html      = html,
                                                              .is_first  = true});
}

bool bot_game_is_shared(BotTurn *turn)
{
    const char *operation = bot_game_operation(turn);

    return turn->update->kind == TELEGRAM_MESSAGE && operation && strcmp(operation, GAME_MATCH) == 0;
}

/* What an undo refers to by answering a message. */
static ErrorCode reference_read(Tx *tx, BotTurn *turn, GameInput *input, Error *reterr)
{
    const char *operation = game_operation(input, tx->arena);

    if (input->kind != GAME_MESSAGE || !input->is_reply || !operation || strcmp(operation, GAME_UNDO) != 0)
        return OK;
    return telegram_reference_find(tx, turn->bot_id, input->chat_id, turn->update->message->reply_to->id,
                                   &input->reply_reference, reterr);
}

/* Which messages are about what the game wants to edit. */
static ErrorCode messages_find(Tx *tx, const BotTurn *turn, const GameInput *input, GameOutput *output, Error *reterr)
{
    for (int i = 0; i < output->count; i++)
        if (output->list[i].kind == GAME_EDIT_ABOUT)
            TRY(telegram_message_about(tx, turn->bot_id, input->chat_id, output->list[i].reference,
                                       &output->list[i].message_id, reterr));
    return OK;
}

ErrorCode bot_game_update(Tx *tx, BotTurn *const *turns, int count, Error *reterr)
{
    GameInput  *inputs  = arena_array(tx->arena, GameInput, count);
    GameOutput *outputs = arena_array(tx->arena, GameOutput, count);
    BotTurn   **given   = arena_array(tx->arena, BotTurn *, count);
    int         all     = 0;

    for (int i = 0; i < count; i++) {
        GameInput *input = &inputs[all];

        if (!bot_input_read(turns[i], input))
            continue;
        if (!input->is_anonymous)
            input->admin = turns[i]->prepared ? turns[i]->prepared->admin : ADMIN_UNKNOWN;
        TRY(reference_read(tx, turns[i], input, reterr));
        if (turns[i]->progress) {
            input->progress         = progress_show;
            input->progress_context = turns[i];
        }
        given[all++] = turns[i];
    }
    if (all > 0)
        TRY(game_run(tx, inputs, all, outputs, reterr));
    for (int i = 0; i < all; i++) {
        TRY(messages_find(tx, given[i], &inputs[i], &outputs[i], reterr));
        given[i]->busy = outputs[i].busy;
        bot_output_send(given[i], &inputs[i], &outputs[i]);
    }
    return OK;
}

const char *bot_game_operation(BotTurn *turn)
{
    GameInput input;

    return bot_input_read(turn, &input) ? game_operation(&input, turn->arena) : NULL;
}

bool bot_game_is_long(BotTurn *turn)
{
    const char *operation = bot_game_operation(turn);

    return operation && strcmp(operation, GAME_UNDO) == 0;
}

void bot_game_failed(BotTurn *turn, const Error *why)
{
    GameInput   input;
    GameOutput *output = arena_alloc(turn->arena, sizeof *output);

    if (bot_input_read(turn, &input) && game_failed(&input, why, turn->arena, output))
        bot_output_send(turn, &input, output);
}
