/* examples/c/chips.h: a program's loop over its chips, which stops with flhal's own words when a call fails. */
#ifndef CHIPS_H
#define CHIPS_H

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

/* Calls run for every chip that is found; there must be one. */
static inline void for_each_chip(void (*run)(flhal_device* device, const flhal_device_info* info)) {
  for (uint32_t i = 0; i < flhal_device_count(); ++i) {
    flhal_device_info info = {.struct_size = sizeof info};
    must(flhal_device_get_info(flhal_device_at(i), &info), "flhal_device_get_info");
    run(flhal_device_at(i), &info);
  }
  must(flhal_device_count() > 0 ? FLHAL_OK : flhal_last_error(NULL, 0, NULL), "flhal_device_count");
}

#endif
