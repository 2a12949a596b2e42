#ifndef BOARD_H
#define BOARD_H

void board_print(const char* text);
void board_print_int(long n);
long board_heap(void);  /* bytes that malloc has taken from the board */
long board_stack(void); /* bytes of the stack that have been used */

#endif
