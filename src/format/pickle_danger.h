/* Globals that have no business in a file of tensors. */
#ifndef FORMAT_PICKLE_DANGER_H
#define FORMAT_PICKLE_DANGER_H

#include <stdbool.h>

/* Could a pickle that names this global ("module.name") run code, reach the system or the network?
 * plumb never imports anything; a file that tries is refused so that nobody loads it elsewhere. */
bool pickle_is_dangerous(const char *global);

#endif
