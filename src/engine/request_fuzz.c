/* The body of POST /v1/executions, with the policy inside it. */
#include "engine/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_request request = { 0 };
    rt_policy policy = *rt_policy_preset(RT_STR("default"));
    rt_json body;
    if (rt_json_parse((rt_str){ (const char *)data, size }, &arena, &body, &err) &&
        rt_request_read(body, &arena, &request, &err) && !rt_json_is_absent(request.policy))
        rt_policy_read(request.policy, &arena, &policy, &err);
    return 0;
}
