local parts, from = {}, 1
local text = output .. "\n\n"
while true do
  local at = text:find("\n\n", from, true)
  if not at then break end
  parts[#parts + 1] = text:sub(from, at - 1)
  from = at + 2
end
local count = 0
for _, part in ipairs(parts) do
  if part:find("%S") then count = count + 1 end
end
local found = (parts[nth] or ""):match("%S+") or ""
found = found:gsub("^'+", ""):gsub('^"+', ""):match("^[^.,?!'\"]*"):lower()
local errors = {}
if count ~= wanted then errors[#errors + 1] = { message = "there are " .. count .. " paragraphs instead of " .. wanted .. ", separated by two line breaks" } end
if nth > count or found ~= word then errors[#errors + 1] = { message = "paragraph " .. nth .. " must start with the word " .. word } end
return { valid = #errors == 0, score = (2 - #errors) / 2, errors = errors }
