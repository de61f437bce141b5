using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using System.Text.RegularExpressions;

namespace ScaleTrain {

/// <summary>The library's errors name C functions as ways out; here they name the members that call them.</summary>
internal static class MethodNames {
  private static readonly Regex function = new Regex("(?<![\\w/.\"-])st_\\w+(?![\\w/\"-])");
  private static readonly Lazy<Dictionary<string, string>> names = new Lazy<Dictionary<string, string>>(Make);

  /// <summary>The message with Trainer.Forward for st_trainer_forward.</summary>
  internal static string In(string message) {
    if (!message.Contains("st_")) return message;
    return function.Replace(message, found => names.Value.TryGetValue(found.Value, out string name) ? name : found.Value);
  }

  // Of several members, the one of the shortest name: reflection gives them in no fixed order.
  private static Dictionary<string, string> Make() {
    const BindingFlags all = BindingFlags.Public | BindingFlags.Instance | BindingFlags.Static | BindingFlags.DeclaredOnly;
    var calls = from type in typeof(MethodNames).Assembly.GetExportedTypes()
                from member in type.GetMembers(all)
                from OfCAttribute of in member.GetCustomAttributes(typeof(OfCAttribute), false)
                from called in of.Functions
                select new { called, name = member is ConstructorInfo ? "new " + type.Name : type.Name + "." + member.Name };
    return calls.GroupBy(call => call.called, call => call.name)
      .ToDictionary(group => group.Key, group => group.OrderBy(name => name.Length).ThenBy(name => name, StringComparer.Ordinal).First());
  }
}

}
