package main

import (
	"fmt"
	"strings"
)

// results writes the result codes for the seam, and package cuda's error for each.
func results(rows [][]string) (map[string]string, error) {
	var codes, names, errs strings.Builder
	for _, row := range rows {
		if len(row) < 2 {
			return nil, fmt.Errorf("row %v: want NAME NUMBER", row)
		}
		name, number := camel(row[0]), row[1]
		fmt.Fprintf(&codes, "Error%s Result = %s\n", name, number)
		fmt.Fprintf(&names, "Error%s: \"CUDA_ERROR_%s\",\n", name, row[0])
		fmt.Fprintf(&errs, "Err%s = Code(driver.Error%s) // CUDA_ERROR_%s\n", strings.Replace(name, "StreamCapture", "Capture", 1), name, row[0])
	}
	return map[string]string{
		"internal/driver/zresult.go": "package driver\n\n" +
			"// Result codes, by the driver's numbers.\nconst (\nSuccess Result = 0\n" + codes.String() + ")\n\n" +
			"var resultNames = map[Result]string{\nSuccess: \"CUDA_SUCCESS\",\n" + names.String() + "}\n",
		"zerrors.go": "package cuda\n\nimport \"github.com/hostlaunch/cuda/internal/driver\"\n\n" +
			"// The driver's result codes as errors, for errors.Is. Each is the CUresult of the name beside it.\nconst (\n" + errs.String() + ")\n",
	}, nil
}

// initialisms are the parts of a name that stay in capitals.
var initialisms = map[string]string{
	"ECC": "ECC", "PTX": "PTX", "JIT": "JIT", "GPU": "GPU", "PC": "PC", "MPS": "MPS", "RPC": "RPC", "CDP": "CDP", "NVLINK": "NVLink",
}

// camel spells a name of the driver's as Go does.
func camel(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		if s, ok := initialisms[part]; ok {
			b.WriteString(s)
			continue
		}
		b.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return b.String()
}
