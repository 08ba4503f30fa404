// Judges objects as GitOps tools do: runs the Lua of Argo CD, evaluates the CEL of Flux, and asks kstatus.
// Reads a JSON list of {"lua"|"cel": TEXT or "kstatus": true, "object": {…}} and prints the list of answers.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type question struct {
	Lua     string         `json:"lua"`
	Cel     string         `json:"cel"`
	Kstatus bool           `json:"kstatus"`
	Object  map[string]any `json:"object"`
}

// Argo CD opens these libraries and no others.
var luaLibraries = map[string]lua.LGFunction{
	lua.LoadLibName: lua.OpenPackage,
	lua.BaseLibName: lua.OpenBase,
	lua.TabLibName:  lua.OpenTable,
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case int64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.NewTable()
		for _, one := range value {
			table.Append(toLua(state, one))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, one := range value {
			table.RawSetString(key, toLua(state, one))
		}
		return table
	}
	return lua.LNil
}

// An empty table is an empty list: Lua does not tell the two apart.
func fromLua(value lua.LValue) any {
	switch value := value.(type) {
	case lua.LBool:
		return bool(value)
	case lua.LNumber:
		return float64(value)
	case lua.LString:
		return string(value)
	case *lua.LTable:
		list, object := []any{}, map[string]any{}
		value.ForEach(func(key, one lua.LValue) {
			if text, ok := key.(lua.LString); ok {
				object[string(text)] = fromLua(one)
			} else {
				list = append(list, fromLua(one))
			}
		})
		if len(object) > 0 {
			return object
		}
		return list
	}
	return nil
}

func runLua(script string, object map[string]any) (any, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range luaLibraries {
		call := lua.P{Fn: state.NewFunction(open), NRet: 0, Protect: true}
		if err := state.CallByParam(call, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		return nil, err
	}
	return fromLua(state.Get(-1)), nil
}

// As Flux does: parsed, not checked, with the fields at the root of the object as variables.
func evaluate(expression string, object map[string]any) (any, error) {
	environment, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings())
	if err != nil {
		return nil, err
	}
	parsed, issues := environment.Parse(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := environment.Program(parsed, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, err
	}
	answer, _, err := program.Eval(object)
	if err != nil {
		return nil, err
	}
	return answer.Value(), nil
}

func answer(asked question) (any, error) {
	switch {
	case asked.Lua != "":
		return runLua(asked.Lua, asked.Object)
	case asked.Cel != "":
		return evaluate(asked.Cel, asked.Object)
	default:
		result, err := status.Compute(&unstructured.Unstructured{Object: asked.Object})
		if err != nil {
			return nil, err
		}
		return map[string]any{"status": result.Status, "message": result.Message}, nil
	}
}

func main() {
	var questions []question
	decoder := json.NewDecoder(os.Stdin)
	if err := decoder.Decode(&questions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers := make([]map[string]any, len(questions))
	for i, asked := range questions {
		integers(asked.Object)
		value, err := answer(asked)
		if err != nil {
			answers[i] = map[string]any{"error": err.Error()}
		} else {
			answers[i] = map[string]any{"value": value}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Makes whole numbers int64, which is what the API's own decoder gives.
func integers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, one := range value {
			value[key] = integers(one)
		}
	case []any:
		for i, one := range value {
			value[i] = integers(one)
		}
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}
