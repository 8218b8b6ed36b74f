/* Text that strangers wrote, in XML. */
#ifndef REPORT_XML_H
#define REPORT_XML_H

#include "base/buf.h"

/* As the text of an element or the value of an attribute: nothing of it is markup, and what XML 1.0
 * has no place for, not even as a reference, is replaced. */
void xml_put(struct buf *out, const char *text);

#endif
