// Learns to balance a pole on a cart; the only reward is how long the pole stands. A policy net plays several episodes at once through a
// Predictor. Then moves that led to more than the usual reward become likelier (REINFORCE; Williams 1992, "Simple statistical gradient-following
// algorithms"). Simulation, policy and training run in this one process, and the net's arrays belong to this program.
// Build: mcs -r:ScaleTrain.dll PolicyGradient.cs
using System;
using System.Globalization;
using System.Linq;
using ScaleTrain;

// The cart and pole of Barto, Sutton and Anderson with Gym's constants: SI units, 20 ms per step, a push of 10 N to the left or the right.
sealed class CartPole {
  internal const int Sees = 4, Moves = 2;
  const double Dt = 0.02, Gravity = 9.8, Mass = 1.1, PoleMass = 0.1, HalfPole = 0.5, Force = 10, Edge = 2.4, Fallen = 12 * Math.PI / 180;
  double place, speed, angle, turning;

  internal CartPole(Func<float> uniform) {
    place = 0.1 * uniform() - 0.05;
    speed = 0.1 * uniform() - 0.05;
    angle = 0.1 * uniform() - 0.05;
    turning = 0.1 * uniform() - 0.05;
  }

  internal bool Stands { get { return Math.Abs(place) < Edge && Math.Abs(angle) < Fallen; } }

  internal void Look(Span<float> to) {
    to[0] = (float)place;
    to[1] = (float)speed;
    to[2] = (float)(10 * angle);  // scaled to the size of the other inputs
    to[3] = (float)turning;
  }

  internal void Push(int move) {
    double sin = Math.Sin(angle), cos = Math.Cos(angle), push = ((move == 1 ? Force : -Force) + PoleMass * HalfPole * turning * turning * sin) / Mass;
    double tilt = (Gravity * sin - cos * push) / (HalfPole * (4.0 / 3 - PoleMass * cos * cos / Mass));
    place += Dt * speed;
    speed += Dt * (push - PoleMass * HalfPole * tilt * cos / Mass);
    angle += Dt * turning;
    turning += Dt * tilt;
  }
}

static class PolicyGradient {
  const int Episodes = 16, Longest = 200, MostRows = Episodes * Longest, Rounds = 60;
  const double Discount = 0.98;

  // The moves played: one row per move, ordered by move number, then by episode that was still standing. The net reads its inputs and writes
  // its outputs here.
  static readonly float[] seen = new float[MostRows * CartPole.Sees], scores = new float[MostRows * CartPole.Moves], gradient = new float[MostRows * CartPole.Moves];
  static readonly int[] moves = new int[MostRows], episodes = new int[MostRows], lengths = new int[Episodes];
  static readonly double[] advantages = new double[MostRows];
  static uint state = 1;

  // A random number between 0 and 1.
  static float Uniform() {
    state = unchecked(state * 1664525 + 1013904223);
    return (float)(state >> 8) / (1 << 24);
  }

  // Some rows of an array, in place.
  static View Rows(float[] array, int first, int count, int width) { return View.Of(array.AsMemory(first * width, count * width), count, width); }

  // The probability of a push to the right: the softmax of a row's two scores.
  static double Right(Span<float> rows, int row) { return 1 / (1 + Math.Exp(rows[row * CartPole.Moves] - rows[row * CartPole.Moves + 1])); }

  // Plays all episodes at once until each has fallen or has stood long enough. Returns the number of rows.
  static int Play(Predictor policy) {
    CartPole[] carts = Enumerable.Range(0, Episodes).Select(e => new CartPole(Uniform)).ToArray();
    Array.Clear(lengths, 0, Episodes);
    int rows = 0;
    for (int move = 0; move < Longest; ++move) {
      int first = rows;
      for (int e = 0; e < Episodes; ++e) {
        if (!carts[e].Stands) continue;
        carts[e].Look(seen.AsSpan(rows * CartPole.Sees, CartPole.Sees));
        episodes[rows++] = e;
        ++lengths[e];
      }
      if (rows == first) break;
      policy.Run(new Batch { { "x", Rows(seen, first, rows - first, CartPole.Sees) } }, new Batch { { "prediction", Rows(scores, first, rows - first, CartPole.Moves) } });
      for (int row = first; row < rows; ++row) {
        moves[row] = Uniform() < Right(scores, row) ? 1 : 0;
        carts[episodes[row]].Push(moves[row]);
      }
    }
    return rows;
  }

  // The advantage of each row: how long its episode stood afterwards, discounted, normalised over all rows.
  static void Weigh(int rows) {
    var left = (int[])lengths.Clone();
    for (int row = 0; row < rows; ++row) advantages[row] = (1 - Math.Pow(Discount, left[episodes[row]]--)) / (1 - Discount);
    double mean = advantages.Take(rows).Average(), spread = Math.Sqrt(advantages.Take(rows).Average(value => (value - mean) * (value - mean)));
    for (int row = 0; row < rows; ++row) advantages[row] = (advantages[row] - mean) / (spread + 1e-6);
  }

  // One step on the loss mean(-advantage * log p(move)). A step takes a full batch; rows that were not played have gradient 0.
  static void Learn(Trainer trainer, int rows) {
    Span<float> now = trainer.Forward(new Batch { { "x", seen, MostRows, CartPole.Sees } })["prediction"].As<float>();
    Array.Clear(gradient, 0, gradient.Length);
    for (int row = 0; row < rows; ++row) {
      double slope = advantages[row] * (Right(now, row) - moves[row]) / rows;
      gradient[row * CartPole.Moves] = (float)-slope;
      gradient[row * CartPole.Moves + 1] = (float)slope;
    }
    trainer.Backward(new Batch { { "prediction", gradient, MostRows, CartPole.Moves } });
    trainer.Apply();
  }

  static int Main(string[] arguments) {
    if (arguments.Length > 0 && (arguments.Length != 2 || arguments[0] != "--device")) {
      Console.Error.WriteLine("usage: PolicyGradient [--device NAME]");
      return 2;
    }
    string device = arguments.Length == 0 ? "cpu" : arguments[1];
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    var returns = new double[Rounds];
    using (var context = new Context(new ContextOptions { Device = device }))
    using (Model net = Model.Builtin(context, "mlp", 1, new { inputs = CartPole.Sees, hidden = new[] { 32 }, outputs = CartPole.Moves }))
    using (var recipe = new Recipe { Batch = MostRows, Lr = 0.02, Warmup = 0, WeightDecay = 0 })
    using (var trainer = new Trainer(net, recipe))
    using (var policy = new Predictor(net)) {
      for (int round = 0; round < Rounds; ++round) {
        int rows = Play(policy);
        Weigh(rows);
        Learn(trainer, rows);
        policy.Refresh();  // plays the next episodes with the new weights
        returns[round] = lengths.Average();
        if (round == 0 || (round + 1) % 10 == 0) Console.WriteLine($"round {round + 1,2}  it stood for {returns[round],5:F1} moves");
      }
    }
    double after = returns.Skip(Rounds - 10).Average();
    Console.WriteLine($"at first {returns[0]:F1} moves, in the last ten rounds {after:F1} of {Longest}");
    return returns[0] < 40 && after > 150 ? 0 : 1;
  }
}
