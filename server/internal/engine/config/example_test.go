package config_test

import (
	"fmt"
	"strings"

	"github.com/zsetd/zsetd/server/internal/engine/config"
)

func Example() {
	values, err := config.ReadArgs([]string{"--maxmemory", "100mb", "--save", "60", "1000", "--replica-priority", "5"})
	if err != nil {
		fmt.Println(err)
		return
	}
	settings, table := config.Defaults(), config.Parameters()
	for name, value := range values {
		if err := config.Find(table, name).Set(&settings, value); err != nil {
			fmt.Println(name, err)
		}
	}
	fmt.Println(settings.Maxmemory, settings.Save)
	fmt.Println(config.Find(table, "PORT").Set(&settings, "65536"))
	file, _, _ := strings.Cut(settings.Rewrite("# limits\nmaxmemory 1gb\n", nil, false), "# Generated")
	fmt.Print(file)
	// Output:
	// 104857600 [{60 1000}]
	// argument must be between 0 and 65535 inclusive
	// # limits
	// maxmemory 100mb
}
