// Calls random public members with absurd values; the worst result must be a C# exception. ProgramEndTests starts it.
// OddCalls.exe SEED CALLS
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using ScaleTrain;

static class OddCalls {
  static Random random;
  static readonly Dictionary<Type, List<object>> values = new Dictionary<Type, List<object>>();
  static readonly string[] excluded = { "Run", "RunAsync", "Calibrate" };  // a trainer's 2^40 steps and a calibration would take too long; see Main

  static void Add<T>(params T[] some) {
    if (!values.ContainsKey(typeof(T))) values[typeof(T)] = new List<object>();
    foreach (T one in some) values[typeof(T)].Add(one);
  }

  static object Any(Type type) {
    if (type.IsByRef) return null;
    if (type.IsArray && values.ContainsKey(type.GetElementType()) && random.Next(4) > 0 && !values.ContainsKey(type)) {
      var made = Array.CreateInstance(type.GetElementType(), random.Next(4));
      for (int i = 0; i < made.Length; ++i) made.SetValue(Any(type.GetElementType()), i);
      return made;
    }
    object[] fitting = values.Where(pair => type.IsAssignableFrom(pair.Key)).SelectMany(pair => pair.Value).ToArray();
    if (type.IsValueType && fitting.Length == 0) return Activator.CreateInstance(type);
    if (!type.IsValueType && random.Next(8) == 0) return null;
    return fitting.Length == 0 ? null : fitting[random.Next(fitting.Length)];
  }

  static void Keep(object made) {
    if (made == null) return;
    Type type = made.GetType();
    if (type.Namespace != "ScaleTrain") return;
    if (!values.ContainsKey(type)) values[type] = new List<object>();
    if (values[type].Count < 12) values[type].Add(made);
    else values[type][random.Next(12)] = made;
  }

  static int Main(string[] arguments) {
    random = new Random(int.Parse(arguments[0]));
    Directory.SetCurrentDirectory(Path.GetTempPath());
    Add<long>(-1, 0, 1, 2, 3, 8, 1L << 40, long.MaxValue, long.MinValue);
    Add<int>(-1, 0, 1, 2, 3);
    Add<double>(0, 1, 0.5, -1, double.NaN, double.PositiveInfinity, 1e300);
    Add<float>(0, 1, float.NaN);
    Add<bool>(true, false);
    Add<string>("", "x", "y", "w", "lr", "{", "{}", "{\"layers\":1,\"width\":8,\"heads\":1,\"context\":4}", "gpt", "mlp", "add", "matmul", "first.weight", "0.1", "größe", "a\0b", "\ud800");
    Add<View>(new float[3], new float[0], new float[2, 2], new double[3], new int[8, 4], View.Of(new float[9]).Strided(0, new long[] { 2, 2 }, new long[] { 3, 1 }), View.Of(new float[4]).AsReadOnly(),
              View.At(IntPtr.Zero, DType.F32, 3), View.At(IntPtr.Zero, DType.F32, 0), View.Bf16(new ushort[4]));
    Add<Batch>(new Batch(), new Batch { { "x", new float[4, 1] }, { "y", new float[4, 1] } }, new Batch { { "", new float[1] } }, new Batch { { "x", new float[4] }, { "x", new float[4] } }, new Batch { { "w", new float[2, 2] } });
    Add<DType>((DType)0, DType.F32, DType.I32, DType.Bf16, (DType)99);
    Add<Init>((Init)(-1), Init.Xavier, Init.Normal);
    Add<TimeSpan>(TimeSpan.Zero, TimeSpan.FromMilliseconds(1), TimeSpan.MinValue, TimeSpan.MaxValue);
    var soon = new CommunicatorOptions { Deadline = TimeSpan.FromMilliseconds(1), Start = TimeSpan.FromMilliseconds(1) };  // no other rank joins
    Add<CommunicatorOptions>(soon);
    Add<Stream>(new MemoryStream(), new MemoryStream(new byte[] { 1, 2, 3 }), Stream.Null);
    Add<Func<long, double>>(k => 0.1, k => double.NaN);
    Add<Func<int, bool>>(token => true, token => false);
    Add<Func<StepReport, bool>>(report => report.Step < 20);
    Add<FillFunction>((rows, arrays) => {}, (rows, arrays) => { throw new IOException(); });
    Add<Field>(new Field("x", DType.F32, 1), new Field("y", DType.F32, 1), default(Field));
    Add<object>(new { lr = 0.1 }, new Dictionary<string, object> { { "hidden", new[] { 4 } } });
    Type[] types = typeof(Context).Assembly.GetExportedTypes().Where(type => !type.ContainsGenericParameters && !type.IsEnum && !typeof(Exception).IsAssignableFrom(type) && type != typeof(CommunicatorOptions)).ToArray();
    var members = types.SelectMany(type => type.GetMethods(BindingFlags.Public | BindingFlags.Static | BindingFlags.Instance | BindingFlags.DeclaredOnly).Cast<MethodBase>().Concat(type.GetConstructors()))
                    .Where(member => !member.ContainsGenericParameters && !excluded.Contains(member.Name) &&
                                     !member.GetParameters().Any(one => one.ParameterType.IsByRef || one.ParameterType.IsPointer || one.ParameterType.Name.Contains("Span") || one.ParameterType == typeof(IntPtr)))
                    .ToArray();
    int calls = int.Parse(arguments[1]), worked = 0;
    var odd = new HashSet<string>();
    for (int i = 0; i < calls; ++i) {
      MethodBase member = members[random.Next(members.Length)];
      if (member.Name == "Dispose" && random.Next(10) > 0) continue;
      object callee = member.IsStatic || member is ConstructorInfo ? null : Any(member.DeclaringType);
      if (callee == null && !member.IsStatic && !(member is ConstructorInfo)) continue;
      object[] given = member.GetParameters().Select(one => one.ParameterType == typeof(CommunicatorOptions) ? soon : Any(one.ParameterType)).ToArray();
      try {
        object made = member is ConstructorInfo ? ((ConstructorInfo)member).Invoke(given) : member.Invoke(callee, given);
        ++worked;
        Keep(made);
        if (made is System.Threading.Tasks.Task) try { ((System.Threading.Tasks.Task)made).Wait(1000); } catch (AggregateException) {}
      } catch (Exception thrown) {
        Exception inner = (thrown as TargetInvocationException)?.InnerException ?? thrown;
        if (inner is NullReferenceException || inner is IndexOutOfRangeException || inner is InvalidCastException || inner is OverflowException || inner is ArithmeticException && !(inner is ScaleTrainException) ||
            inner is ObjectDisposedException || inner is InternalErrorException) odd.Add(member.DeclaringType.Name + "." + member.Name + ": " + inner);
      }
      if (i % 500 == 0) GC.Collect();
    }
    foreach (string one in odd) Console.WriteLine(one);
    Console.WriteLine(worked > calls / 20 && odd.Count == 0 ? "end" : "worked: " + worked);
    return odd.Count == 0 ? 0 : 1;
  }
}
