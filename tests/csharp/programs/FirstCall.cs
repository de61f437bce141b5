// Started by LoadingTests: prints the result of the first call of the library, or why it failed.
using System;
using ScaleTrain;

static class FirstCall {
  static int Main() {
    try {
      Console.WriteLine("version " + Library.Version);
      return 0;
    } catch (ScaleTrainException refused) {
      Console.WriteLine(refused.GetType().Name + ": " + refused.Message);
      return 1;
    }
  }
}
