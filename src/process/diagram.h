/*
 * diagram.h - a definition as a Mermaid flowchart, which GitHub and many wikis draw.
 *
 * Nodes are numbered, because names of steps may be words of Mermaid; labels are quoted and escaped. A parallel and an each are subgraphs.
 * Dotted arrows lead to compensations.
 *
 * Threads: any.
 */
#ifndef PROCESS_DIAGRAM_H
#define PROCESS_DIAGRAM_H

#include "base/text.h"
#include "process/definition.h"

void diagram_print(const Definition *definition, Text *text);

#endif
