/*
 * library_static.c - a program linked with libpawl.a that has functions of its own which are called as pawl's internal ones are.
 *
 *     library_static URL       prints what each call returned, and how often pawl called functions of this program
 */
#include <pawl/pawl.h>
#include <stdio.h>
#include <string.h>

static int called;

int  uuid_parse(const char *text, unsigned char *id);
void log_error(const char *text);
void thread_start(void);
void error_set(void);

/* As that of libuuid: 0 is success. */
int uuid_parse(const char *text, unsigned char *id)
{
    called++;
    memset(id, 7, 16);
    return text[0] == '0' ? 0 : -1;
}

void log_error(const char *text)
{
    called += text != NULL;
}

void thread_start(void)
{
    called++;
}

void error_set(void)
{
    called++;
}

static PawlStatus raise_body(PawlTx *tx, void *context)
{
    return pawl_query(tx, context, 0, NULL, NULL);
}

int main(int argc, char **argv)
{
    /* In upper case, so that it is the key only if pawl's own uuid_parse() has read it. */
    PawlOperation topup   = {.kind   = PAWL_TOPUP,
                             .txn_id = "0198C0DE-0000-7000-8000-00000000000A",
                             .owner  = "ann",
                             .amount = 5};
    char          raise[] = "do $$ begin raise exception 'x' using errcode = 'QU004'; end $$";
    Pawl         *pawl;
    PawlPosted    posted;
    PawlError     error;
    unsigned char id[16];
    PawlStatus    again;
    int           before;

    if (argc != 2 || pawl_open(argv[1], &pawl, &error) != PAWL_OK)
        return 1;
    printf("open: %d\n", (int)pawl_wallet_open(pawl, &(PawlWallet){.owner = "ann"}, 0, NULL, &error));
    printf("post: %d\n", (int)pawl_post(pawl, &topup, 0, &posted, &error));
    topup.txn_id = "0198c0de-0000-7000-8000-00000000000a";
    again        = pawl_post(pawl, &topup, 0, &posted, &error);
    printf("again: %d %d\n", (int)again, posted.replayed);
    /* The bus has joined its SQLSTATEs before main(). */
    printf("raised: %d\n", (int)pawl_transaction(pawl, &(PawlTransaction){0}, raise_body, raise, &error));
    pawl_close(pawl);
    before = called;
    printf("called: %d, parsed: %d\n", before, uuid_parse("0", id));
    return 0;
}
