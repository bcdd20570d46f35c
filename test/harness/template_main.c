/*
 * template_main.c - pawl_test_template: make sure the template exists, print its name. For runners in other languages.
 */
#include <stdio.h>
#include <stdlib.h>

#include "test/harness/template.h"

int main(void)
{
    const char *url = getenv("PAWL_TEST_URL");
    char        name[TEMPLATE_NAME_SIZE];
    Error       error;

    if (!url) {
        fprintf(stderr, "PAWL_TEST_URL is not set: run ./dev test, or test/harness/cluster.sh run COMMAND\n");
        return 2;
    }
    if (template_ensure(url, name, &error) != OK) {
        fprintf(stderr, "no template database: %s\n", error.text);
        return 1;
    }
    puts(name);
    return 0;
}
