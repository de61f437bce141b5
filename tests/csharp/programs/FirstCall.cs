// What LoadingTests looks at: the first thing that a program has of the library, or why it has nothing.
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
