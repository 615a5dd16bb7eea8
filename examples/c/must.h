/* examples/c/must.h: stops the program with flhal's own words when a call fails. */
#ifndef MUST_H
#define MUST_H

#include <flhal/flhal.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(flhal_status status, const char* what) {
  char text[4096];
  if (status >= 0 && status != FLHAL_DECLINED) return;
  flhal_last_error(text, sizeof text, NULL);
  fprintf(stderr, "%s: %s: %s\n", what, flhal_status_name(status), status == FLHAL_DECLINED ? flhal_last_decline() : text);
  exit(1);
}

#endif
