/*
 * phrase.h - every text that the game says, in every language: one row per text, one column per language.
 *
 * Texts are HTML with the tags b, i, s and code. {0}, {1} ... stand for values, which are inserted as they are: the
 * caller escapes them. A test checks that all languages have the same values in each text.
 * Threads: any; constant.
 */
#ifndef RATING_PHRASE_H
#define RATING_PHRASE_H

#include <stdint.h>

#include "base/text.h"

typedef enum { LANGUAGE_EN, LANGUAGE_RU, LANGUAGE_COUNT } Language;
extern const char *const language_codes[LANGUAGE_COUNT]; /* "en", "ru" */
Language                 language_of(const char *code);  /* "ru-RU" is Russian; NULL and unknown ones are English */

/* clang-format off */
#define PHRASES(X) \
    X(WELCOME, \
      "<b>I keep the ratings of this group.</b>\n" \
      "/match @ann @bob 3 1 - register a match (or reply to your opponent: /match 3 1)\n" \
      "/ranking - the leaderboard\n" \
      "/me, /stats @ann - one player in numbers\n" \
      "/history, /h2h @ann @bob - matches\n" \
      "/chart - ratings over time\n" \
      "/undo - undo the last match\n" \
      "/export - everything as CSV\n" \
      "/settings - for admins\n" \
      "More about a command: /match help", \
      "<b>Я веду рейтинг этой группы.</b>\n" \
      "/match @ann @bob 3 1 — записать матч (или ответьте сопернику: /match 3 1)\n" \
      "/ranking — таблица\n" \
      "/me, /stats @ann — игрок в цифрах\n" \
      "/history, /h2h @ann @bob — матчи\n" \
      "/chart — график рейтинга\n" \
      "/undo — отменить последний матч\n" \
      "/export — всё в CSV\n" \
      "/settings — для админов\n" \
      "Подробнее о команде: /match help") \
    X(WELCOME_PRIVATE, \
      "Hi! I keep ratings for groups. Add me to a group, then write there: <code>/match @ann @bob 3 1</code>", \
      "Привет! Я веду рейтинги в группах. Добавьте меня в группу и напишите там: <code>/match @ann @bob 3 1</code>") \
    X(ONLY_IN_GROUPS, \
      "This works in a group. Add me to one and write the command there.", \
      "Это работает в группе. Добавьте меня в группу и напишите команду там.") \
    X(HELP_MATCH, \
      "Register a match: <code>/match @ann @bob 3 1</code>\nAs a reply to your opponent, your own score " \
      "first: <code>/match 3 1</code>", \
      "Записать матч: <code>/match @ann @bob 3 1</code>\nОтветом сопернику, сначала свой счёт: " \
      "<code>/match 3 1</code>") \
    X(HELP_RANKING, \
      "The leaderboard: <code>/ranking</code>. From place 21 on: <code>/ranking 21</code>", \
      "Таблица: <code>/ranking</code>. Начиная с 21 места: <code>/ranking 21</code>") \
    X(HELP_ME, \
      "Your rating, place and last matches: <code>/me</code>", \
      "Ваш рейтинг, место и последние матчи: <code>/me</code>") \
    X(HELP_STATS, "One player in numbers: <code>/stats @ann</code>", "Игрок в цифрах: <code>/stats @ann</code>") \
    X(HELP_HISTORY, \
      "The last matches of the group: <code>/history</code>, of one player: <code>/history @ann</code>", \
      "Последние матчи группы: <code>/history</code>, одного игрока: <code>/history @ann</code>") \
    X(HELP_H2H, \
      "Two players against each other: <code>/h2h @ann @bob</code>. You and another one: <code>/h2h @bob</code>", \
      "Личные встречи: <code>/h2h @ann @bob</code>. Ваши встречи с игроком: <code>/h2h @bob</code>") \
    X(HELP_CHART, \
      "Ratings over time: <code>/chart</code>, or of up to eight players: <code>/chart @ann @bob</code>", \
      "График рейтинга: <code>/chart</code>, или до восьми игроков: <code>/chart @ann @bob</code>") \
    X(HELP_UNDO, \
      "Undo the last match: <code>/undo</code>. Another one: reply to my message about it with " \
      "<code>/undo</code>. Players can undo for {0} hours, admins at any time.", \
      "Отменить последний матч: <code>/undo</code>. Другой матч: ответьте <code>/undo</code> на моё " \
      "сообщение о нём. Игроки могут отменить матч в течение {0} ч, админы — в любое время.") \
    X(HELP_UNDO_ADMINS, \
      "Undo the last match: <code>/undo</code>. Another one: reply to my message about it with " \
      "<code>/undo</code>. In this group only admins can undo.", \
      "Отменить последний матч: <code>/undo</code>. Другой матч: ответьте <code>/undo</code> на моё " \
      "сообщение о нём. В этой группе отменять могут только админы.") \
    X(HELP_SETTINGS, \
      "For admins. See all settings: <code>/settings</code>. Change one: <code>/settings k 24</code>", \
      "Для админов. Все настройки: <code>/settings</code>. Изменить: <code>/settings k 24</code>") \
    X(HELP_EXPORT, \
      "All matches and ratings as CSV: <code>/export</code>", \
      "Все матчи и рейтинги в CSV: <code>/export</code>") \
    X(MATCH_DONE, \
      "🏆 <b>{0}</b> {1}:{2} {3}", "🏆 <b>{0}</b> {1}:{2} {3}") \
    X(MATCH_DRAWN, \
      "🤝 {0} {1}:{2} {3}", "🤝 {0} {1}:{2} {3}") \
    X(MATCH_LINE, "{0}: <b>{1}</b> ({2}), place {3}", "{0}: <b>{1}</b> ({2}), место {3}") \
    X(MATCH_LINE_NO_PLACE, "{0}: <b>{1}</b> ({2})", "{0}: <b>{1}</b> ({2})") \
    X(MATCH_SAME_ASK, \
      "The same result was registered less than a minute ago. Register it once more?", \
      "Такой же результат записан меньше минуты назад. Записать ещё раз?") \
    X(BUTTON_AGAIN, "Register", "Записать") \
    X(BUTTON_NO, "No", "Нет") \
    X(NOT_REGISTERED, "Not registered.", "Не записано.") \
    X(QUESTION_GONE, \
      "❌ This question was answered or is more than a day old. Send the match again.", \
      "❌ На этот вопрос уже ответили, или ему больше суток. Отправьте матч ещё раз.") \
    X(QUESTION_NOT_YOURS, \
      "❌ Only the players and the sender of the match can answer this.", \
      "❌ Ответить может только тот, кто отправил матч, или его участники.") \
    X(KEY_USED, \
      "❌ This message was already used for another match. Nothing was changed; please send it again.", \
      "❌ Это сообщение уже использовано для другого матча. Ничего не изменено, отправьте ещё раз.") \
    X(BUTTON_UNDO, "↩️ Undo", "↩️ Отменить") \
    X(BUTTON_BEFORE, "◀️", "◀️") \
    X(BUTTON_AFTER, "▶️", "▶️") \
    X(MATCH_FORMAT, \
      "❌ Write it like this: <code>/match @ann @bob 3 1</code>", \
      "❌ Напишите так: <code>/match @ann @bob 3 1</code>") \
    X(MATCH_REPLY_FORMAT, \
      "❌ Reply to a message of your opponent, or name both: <code>/match @ann @bob 3 1</code>", \
      "❌ Ответьте на сообщение соперника или назовите обоих: <code>/match @ann @bob 3 1</code>") \
    X(MATCH_ANONYMOUS, \
      "❌ I cannot see who you are. Name both players: <code>/match @ann @bob 3 1</code>", \
      "❌ Мне не видно, кто вы. Назовите обоих игроков: <code>/match @ann @bob 3 1</code>") \
    X(PLAYER_UNKNOWN, \
      "❌ I do not know {0} here yet. Ask them to send any command in this group, or reply to one of their messages.", \
      "❌ Я ещё не знаю {0} в этой группе. Пусть этот человек отправит здесь любую команду — или ответьте " \
      "на его сообщение.") \
    X(PLAYER_LEFT, "❌ {0} has left the group.", "❌ {0} больше не в группе.") \
    X(PLAYER_BOT, "❌ {0} is a bot.", "❌ {0} — бот.") \
    X(PLAYER_ME, "❌ I don’t play, I only keep score.", "❌ Я не играю, только веду счёт.") \
    X(PLAYERS_SAME, "❌ It takes two different players.", "❌ Нужны два разных игрока.") \
    X(SCORES_WRONG, "❌ A score is a whole number from 0 to {0}.", "❌ Счёт — целое число от 0 до {0}.") \
    X(SCORES_ZERO, \
      "❌ 0:0 cannot be registered. Enter a draw as 1:1.", \
      "❌ 0:0 записать нельзя. Запишите ничью как 1:1.") \
    X(NO_DRAWS, "❌ Draws are off in this group.", "❌ В этой группе ничьи выключены.") \
    X(FORWARDED, \
      "❌ Commands cannot be forwarded. Send it yourself.", \
      "❌ Команды нельзя пересылать. Отправьте её сами.") \
    X(WRONG_TOPIC_MATCH, \
      "❌ Matches are registered in {0}another topic{1} of this group.", \
      "❌ Матчи записываются в {0}другой теме{1} этой группы.") \
    X(WRONG_TOPIC_RANKING, \
      "❌ Rankings are shown in {0}another topic{1} of this group.", \
      "❌ Рейтинг показывается в {0}другой теме{1} этой группы.") \
    X(TOO_MANY_MATCH, \
      "❌ Too many commands: this match was not registered. Send it again in a minute.", \
      "❌ Слишком много команд: этот матч не записан. Отправьте его ещё раз через минуту.") \
    X(TOO_MANY, "❌ Too many commands. Please wait a minute.", "❌ Слишком много команд. Подождите минуту, пожалуйста.") \
    X(BUSY, \
      "⏳ This group asks faster than I may answer, so I skip some answers. Matches and undos are done and " \
      "confirmed. Ask again in a minute.", \
      "⏳ Группа спрашивает быстрее, чем мне можно отвечать, поэтому часть ответов пропускаю. Матчи и " \
      "отмены выполняются и подтверждаются. Спросите ещё раз через минуту.") \
    X(RANKING_HEAD, "<b>Ranking</b> ({0}–{1} of {2})", "<b>Рейтинг</b> ({0}–{1} из {2})") \
    X(RANKING_EMPTY, \
      "Nobody has played yet. The first match: <code>/match @ann @bob 3 1</code>", \
      "Ещё никто не играл. Первый матч: <code>/match @ann @bob 3 1</code>") \
    X(RANKING_FORMAT, \
      "❌ That is not a place. From place 21 on: <code>/ranking 21</code>", \
      "❌ Такого места нет. Начиная с 21-го: <code>/ranking 21</code>") \
    X(RANKING_BEYOND, "❌ The ranking has {0} places.", "❌ Мест в таблице: {0}.") \
    X(RANKING_LINE, "{0} {1} - <b>{2}</b>{3} · {4}", "{0} {1} — <b>{2}</b>{3} · {4}") \
    X(STATS_HEAD, "<b>{0}</b>: {1}", "<b>{0}</b>: {1}") \
    X(STATS_PLACE, "Place: {0}", "Место: {0}") \
    X(STATS_GAMES, "Games: {0} - won {1}, drawn {2}, lost {3}", "Игр: {0} — побед {1}, ничьих {2}, поражений {3}") \
    X(STATS_WON_ONE, "Streak: {0} win", "Серия: {0} победа") \
    X(STATS_WON_FEW, "Streak: {0} wins", "Серия: {0} победы") \
    X(STATS_WON_MANY, "Streak: {0} wins", "Серия: {0} побед") \
    X(STATS_LOST_ONE, "Streak: {0} loss", "Серия: {0} поражение") \
    X(STATS_LOST_FEW, "Streak: {0} losses", "Серия: {0} поражения") \
    X(STATS_LOST_MANY, "Streak: {0} losses", "Серия: {0} поражений") \
    X(STATS_BEST, "Best: {0}", "Лучший рейтинг: {0}") \
    X(STATS_RECENT, "Last: {0}", "Последние игры: {0}") \
    X(STATS_DEVIATION, "±{0}", "±{0}") \
    X(STATS_NONE, "{0} has not played here yet.", "{0} здесь ещё не играл(а).") \
    X(STATS_WHOM, "❌ Name a player: <code>/stats @ann</code>", "❌ Назовите игрока: <code>/stats @ann</code>") \
    X(HISTORY_HEAD, "<b>Last matches</b>", "<b>Последние матчи</b>") \
    X(HISTORY_HEAD_OF, "<b>Last matches of {0}</b>", "<b>Последние матчи {0}</b>") \
    X(HISTORY_FORMAT, \
      "❌ Name one player: <code>/history @ann</code>. Two against each other: <code>/h2h @ann @bob</code>", \
      "❌ Назовите одного игрока: <code>/history @ann</code>. Личные встречи: <code>/h2h @ann @bob</code>") \
    X(HISTORY_LINE, "{0}  {1} {2}:{3} {4}  ({5})", "{0}  {1} {2}:{3} {4}  ({5})") \
    X(HISTORY_EMPTY, "There are no matches yet.", "Матчей ещё нет.") \
    X(H2H_HEAD, "<b>{0} - {1}</b>: {2} : {3}, drawn {4}", "<b>{0} — {1}</b>: {2} : {3}, ничьих {4}") \
    X(H2H_POINTS, "Points: {0} : {1}. Last match: {2}", "Очки: {0} : {1}. Последний матч: {2}") \
    X(H2H_NONE, "{0} and {1} have not played against each other.", "{0} и {1} ещё не играли друг с другом.") \
    X(H2H_FORMAT, \
      "❌ Name two players: <code>/h2h @ann @bob</code>", \
      "❌ Назовите двух игроков: <code>/h2h @ann @bob</code>") \
    X(CHART_TITLE, "{0}: ratings over time", "{0}: динамика рейтинга") \
    X(CHART_CAPTION, "Ratings over time ({0})", "Динамика рейтинга ({0})") \
    X(CHART_EMPTY, "There is nothing to draw yet.", "Рисовать пока нечего.") \
    X(CHART_UNABLE, \
      "❌ I can’t draw charts here: my operator has to install the library libcairo2.", \
      "❌ Не могу рисовать графики: владельцу бота нужно установить библиотеку libcairo2.") \
    X(CHART_OFTEN, "❌ A group gets at most {0} charts a minute.", "❌ Не больше {0} графиков в минуту на группу.") \
    X(CHART_MANY, "❌ At most {0} players fit into a chart.", "❌ На график помещается не больше {0} игроков.") \
    X(UNDO_TOAST, "↩️ Undone", "↩️ Отменено") \
    X(UNDO_HEAD, "↩️ Undone: <s>{0} {1}:{2} {3}</s>", "↩️ Отменено: <s>{0} {1}:{2} {3}</s>") \
    X(UNDO_LINE, "{0}: {1} → <b>{2}</b>", "{0}: {1} → <b>{2}</b>") \
    X(UNDO_REPLAYED, \
      "Later matches recalculated: {0}. Ratings changed: {1}.", \
      "Пересчитано следующих матчей: {0}. Изменилось рейтингов: {1}.") \
    X(UNDO_PROGRESS, \
      "⏳ Undoing the match: {0} of {1} later matches replayed…", \
      "⏳ Отменяю матч: пройдено {0} из {1} следующих матчей…") \
    X(UNDO_NOTHING, "❌ There is no match to undo.", "❌ Отменять нечего.") \
    X(UNDO_ALREADY, "❌ This match was already undone.", "❌ Этот матч уже отменён.") \
    X(UNDO_NOT_YOURS, \
      "❌ Only its players and admins may undo a match.", \
      "❌ Отменить матч могут только его игроки и админы.") \
    X(UNDO_TOO_LATE, \
      "❌ The match is more than {0} hours old: only an admin may undo it.", \
      "❌ Матчу больше {0} ч: отменить его может только админ.") \
    X(UNDO_ADMINS, \
      "❌ In this group only admins can undo matches.", \
      "❌ В этой группе отменять матчи могут только админы.") \
    X(UNDO_TOO_OLD, \
      "❌ More than {0} matches follow this one: it cannot be undone any more.", \
      "❌ После этого матча записано больше {0}: отменить его уже нельзя.") \
    X(UNDO_UNSURE, \
      "❌ I could not find out whether you are an admin. Try again later.", \
      "❌ Не удалось узнать, админ ли вы. Попробуйте позже.") \
    X(UNDO_NO_REFERENCE, \
      "❌ Reply to my message about a match, or write /undo alone for the last one.", \
      "❌ Ответьте на моё сообщение о матче или напишите просто /undo для последнего.") \
    X(ADMINS_ONLY, "❌ Only admins of the group may do that.", "❌ Это могут только админы группы.") \
    X(SETTINGS_HEAD, \
      "<b>Settings</b> - change one: <code>/settings k 24</code>", \
      "<b>Настройки</b> — изменить: <code>/settings k 24</code>") \
    X(SETTINGS_LINE, "<code>{0}</code> = <b>{1}</b> - {2}", "<code>{0}</code> = <b>{1}</b> — {2}") \
    X(SETTINGS_CHAT, \
      "Id of this group, for operators: <code>{0}</code>", \
      "ID группы (для администратора бота): <code>{0}</code>") \
    X(SETTINGS_UNKNOWN, \
      "❌ There is no setting {0}. All of them: /settings", \
      "❌ Нет настройки {0}. Все настройки: /settings") \
    X(SETTINGS_VALUE, "❌ {0} cannot be {1}: {2}", "❌ {0} не может быть {1}: {2}") \
    X(SETTINGS_ONE, \
      "❌ A setting has one value: <code>/settings {0} {1}</code>", \
      "❌ У настройки одно значение: <code>/settings {0} {1}</code>") \
    X(SETTINGS_SET, "✅ {0} = {1}. It applies from now on.", "✅ {0} = {1}. Действует с этого момента.") \
    X(SETTING_ANYWHERE, "anywhere", "везде") \
    X(SETTING_TOPIC, "{0}a topic{1}", "{0}тема{1}") \
    X(SETTING_HELP_SYSTEM, "elo or glicko2", "elo или glicko2") \
    X(SETTING_HELP_K, "points at stake, 1 to 400 (Elo)", "сколько очков на кону, от 1 до 400 (Elo)") \
    X(SETTING_HELP_MARGIN, \
      "the margin of victory counts, a win by 1 once, by 3 twice, by 7 or more three times: on or off (Elo)", \
      "учитывать разницу в счёте, победа на 1 очко — один раз, на 3 — вдвое, на 7 и больше — втрое: on (вкл) " \
      "или off (выкл) (Elo)") \
    X(SETTING_HELP_START, "rating of a new player, 100 to 9000", "рейтинг новичка, от 100 до 9000") \
    X(SETTING_HELP_DRAWS, "draws are allowed: on or off", "ничьи разрешены: on (вкл) или off (выкл)") \
    X(SETTING_HELP_UNDO, \
      "hours in which players may undo, 0 to 8760", \
      "сколько часов игрок может отменить матч, от 0 до 8760") \
    X(SETTING_HELP_GAMES, \
      "games before a player has a place, 1 to 1000", \
      "сколько игр до места в таблице, от 1 до 1000") \
    X(SETTING_HELP_MATCHES, \
      "topic for matches: here or anywhere", \
      "тема для матчей: здесь (here) или везде (anywhere)") \
    X(SETTING_HELP_RANKINGS, \
      "topic for rankings: here or anywhere", \
      "тема для рейтинга: здесь (here) или везде (anywhere)") \
    X(SETTING_HELP_LANGUAGE, "en or ru", "en или ru") \
    X(SETTING_HELP_TIMEZONE, "time zone of dates, such as Europe/Moscow", "часовой пояс дат, например Europe/Moscow") \
    X(SETTING_HELP_PUBLISHED, \
      "programs with a key for ratings may read them: on or off", \
      "рейтинг доступен по API: on (вкл) или off (выкл)") \
    X(EXPORT_OFTEN, "❌ A group can be exported once a minute.", "❌ Экспорт возможен раз в минуту.") \
    X(EXPORT_CAPTION_MATCHES, "Matches: {0}", "Матчей: {0}") \
    X(EXPORT_CAPTION_MORE, "The newest {0} matches; older ones by HTTP", "Последние {0} матчей; более ранние по HTTP") \
    X(EXPORT_CAPTION_RATINGS, "Players: {0}", "Игроков: {0}") \
    X(FAILED_CONFLICT, \
      "❌ Several matches of these players came at the same moment. Nothing was changed; please send it again.", \
      "❌ Одновременно пришло несколько матчей этих игроков. Ничего не изменено, отправьте ещё раз.") \
    X(FAILED_LATER, \
      "⏳ I can’t reach my database right now. Your command is saved and will run as soon as I can.", \
      "⏳ База данных не отвечает. Команда сохранена и будет выполнена, как только она ответит.") \
    X(FAILED, "❌ Something went wrong. Nothing was changed.", "❌ Что-то пошло не так. Ничего не изменено.") \
    X(DONE_LATE, "✅ Done. Sorry for the wait.", "✅ Готово, извините за задержку.")
/* clang-format on */

#define X(id, ...) PHRASE_##id,
typedef enum { PHRASES(X) PHRASE_COUNT } PhraseId;
#undef X

const char *phrase_text(Language language, PhraseId id);
/* Which of three forms of a text, for one, few or many, follows a number: id, id + 1 or id + 2. */
PhraseId phrase_of_number(Language language, PhraseId id, int64_t number);
/* Append it with its values; a value that is not given stays empty. */
void phrase_append(Text *text, Language language, PhraseId id, const char *const *values, size_t count);
#define PHRASE(text, language, id, ...)                                         \
    phrase_append((text), (language), (id), (const char *const[]){__VA_ARGS__}, \
                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
#define PHRASE_ALONE(text, language, id) phrase_append((text), (language), (id), NULL, 0)

#endif
