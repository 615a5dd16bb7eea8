/* module.c: code for the chip, and launching it. With these four slots core's portable kernels run on the chip.
 *
 * The dialect is "flhal-host-1", functions that are compiled already, since this chip is the process's own processor.
 * driver: list your compiler's language in device_info. For "opencl-c-1.2" core writes its kernels as text, module_load
 * compiles it, and launch passes groups, group_size and the arguments on. */
#include "chip.h"

#include <stddef.h>
#include <string.h>

struct flhal_p_function {                /* driver: its kernel object                                */
  flhal_host_function code;
};

struct flhal_p_module {                  /* driver: its program object                               */
  flhal_p_device* device;
  const flhal_host_module* code;         /* core's, and lives as long as the process                 */
};

/* Slot 11. driver: compile, and on failure leave the compiler's words in source->build_log and answer FLHAL_E_BUILD. */
flhal_status chip_module_load(flhal_p_device* device, const flhal_p_source_v1* source, flhal_p_module** out) {
  const flhal_host_module* code = source->data;
  flhal_p_module* module;
  if (flhal_needed_extension(source->next))
    return chip_fail(device->plugin, FLHAL_E_UNSUPPORTED, CHIP_NAME ": module_load needs an extension that this plugin does not know; install a newer plugin");
  if (source->build_log != NULL && source->build_log_capacity != 0) source->build_log[0] = 0;
  if (source->dialect == NULL || strcmp(source->dialect, FLHAL_DIALECT_HOST) != 0)
    return chip_fail(device->plugin, FLHAL_E_UNSUPPORTED, CHIP_NAME ": module_load: this chip takes the dialect " FLHAL_DIALECT_HOST " only");
  if (code == NULL || code->struct_size < sizeof *code || (code->n_functions != 0 && code->functions == NULL))
    return chip_fail(device->plugin, FLHAL_E_INVALID, CHIP_NAME ": module_load: `data` is no flhal_host_module");

  module = device->plugin->host->alloc(sizeof *module, 16);
  if (module == NULL) return FLHAL_E_HOST_MEMORY;
  module->device = device;
  module->code = code;
  *out = module;
  return FLHAL_OK;
}

/* Slot 12. No launch of its functions is unfinished. */
void chip_module_unload(flhal_p_module* module) { module->device->plugin->host->free(module); }

/* Slot 13. The function belongs to the module, and is given up with it. */
flhal_status chip_function_get(flhal_p_module* module, const char* name, flhal_p_function** out) {
  uint32_t i;
  for (i = 0; i < module->code->n_functions; ++i)
    if (strcmp(module->code->functions[i].name, name) == 0) {
      *out = (flhal_p_function*)&module->code->functions[i];
      return FLHAL_OK;
    }
  return chip_fail(module->device->plugin, FLHAL_E_NOT_FOUND, CHIP_NAME ": function_get: the module has no function of that name");
}

/* A launch, copied out of the call: pointers to the arguments, and behind them the bytes of the values. */
struct launch {
  flhal_host_kernel run;
  uint64_t groups;
  const void* argv[];
};

static flhal_status run_launch(void* what) {
  struct launch* launch = what;
  if (launch->groups != 0) launch->run(launch->argv, 0, launch->groups);   /* driver: all of its cores share the groups */
  return FLHAL_OK;
}

static const flhal_p_arg* argument(const flhal_p_launch_v1* launch, uint32_t i) {
  return (const flhal_p_arg*)((const char*)launch->args + (size_t)i * launch->arg_stride);
}

static uint64_t value_bytes(const flhal_p_arg* arg) {                       /* each value is aligned for any scalar     */
  return arg->kind == FLHAL_ARG_VALUE ? ((uint64_t)arg->size + 15) & ~15ull : 0;
}

/* Slot 14. */
flhal_status chip_launch(flhal_p_device* device, flhal_p_stream* stream, const flhal_p_launch_v1* given) {
  const flhal_host_v1* host = device->plugin->host;
  uint64_t head = (sizeof(struct launch) + given->n_args * sizeof(void*) + 15) & ~15ull, bytes = head;
  struct launch* launch;
  flhal_status status;
  char* values;
  uint32_t i;

  if (flhal_needed_extension(given->next))
    return chip_fail(device->plugin, FLHAL_E_UNSUPPORTED, CHIP_NAME ": launch needs an extension that this plugin does not know; install a newer plugin");
  if (given->groups[1] > 1 || given->groups[2] > 1)
    return chip_fail(device->plugin, FLHAL_E_INVALID, CHIP_NAME ": launch: the dialect " FLHAL_DIALECT_HOST " has groups in one dimension");
  for (i = 0; i < given->n_args; ++i) {
    if (argument(given, i)->kind != FLHAL_ARG_VALUE && argument(given, i)->kind != FLHAL_ARG_MEMORY)
      return chip_fail(device->plugin, FLHAL_E_UNSUPPORTED, CHIP_NAME ": launch: this chip has no work-group memory");
    bytes += value_bytes(argument(given, i));
  }

  launch = host->alloc(bytes, 16);
  if (launch == NULL) return FLHAL_E_HOST_MEMORY;
  launch->run = given->function->code.run;
  launch->groups = given->groups[0];
  values = (char*)launch + head;
  for (i = 0; i < given->n_args; ++i) {
    const flhal_p_arg* arg = argument(given, i);
    if (arg->kind == FLHAL_ARG_MEMORY) {
      launch->argv[i] = arg->memory != NULL ? arg->memory->bytes + arg->offset : NULL;   /* NULL: an absent operand */
    } else {
      memcpy(values, arg->value, arg->size);
      launch->argv[i] = values;
      values += value_bytes(arg);
    }
  }
#ifdef CHIP_ASYNC
  if (stream != NULL) return chip_enqueue(stream, run_launch, launch);
#endif
#ifndef CHIP_ASYNC
  (void)stream;
#endif
  status = run_launch(launch);
  host->free(launch);
  return status;
}
