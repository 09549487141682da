#include "kernels/testing/emulated_amx.h"

#include "kernels/int8/conv2d/conv2d.h"
#include "kernels/int8/conv2d/testing/emulated.h"
#include "kernels/int8/conv2d_max_pool2d/conv2d_max_pool2d.h"
#include "kernels/register_all.h"

namespace fuselage::kernels {

void RegisterAllOnEmulatedAmx(KernelRegistry& registry) {
  const auto variants = int8::conv2d::EmulatedAmxVariants();
  KernelRegistry all;
  RegisterAll(all);
  for (const KernelEntry* entry : all.Sorted()) {
    if (entry->op == "int8.conv2d") {
      registry.Register(int8::conv2d::EntryOf(variants));
    } else if (entry->op == "int8.conv2d_max_pool2d") {
      registry.Register(int8::conv2d_max_pool2d::EntryWith(variants));
    } else {
      registry.Register(*entry);
    }
  }
}

}  // namespace fuselage::kernels
