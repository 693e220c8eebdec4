module example.test/window

go 1.21
